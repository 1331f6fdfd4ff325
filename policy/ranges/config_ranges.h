#ifndef POLICY_RANGES_CONFIG_RANGES_H_
#define POLICY_RANGES_CONFIG_RANGES_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_reader.h"

// The range of every number in config.json that the program uses, in one table for each part of
// that file. docs/CHECKPOINTS.md shows them.

namespace mjp {

// Both ends are allowed. Of a list, each element lies within them.
struct NumberRange {
  std::string_view key;
  double low, high;
};

// Keys of one JSON object that belong together.
struct RangeTable {
  std::string_view name;
  std::span<const NumberRange> rows;
};

extern const RangeTable kFeatureRanges;     // of each input and output
extern const RangeTable kSchedulerRanges;   // every policy that denoises
extern const RangeTable kReplanningRanges;  // whatever executes chunks of several actions
extern const RangeTable kUnetRanges;        // diffusion, diffusion_compact, diffusion_notebook
extern const RangeTable kCompactRanges;     // compact_encoder
extern const RangeTable kActRanges;         // act
extern const RangeTable kDitRanges;         // multi_task_dit

std::span<const RangeTable* const> AllConfigRanges();

// Reads numbers of an object within the ranges of a table. Throws Error that names the key for one
// outside, and std::out_of_range for a key that the table does not have.
class RangedKeys {
 public:
  RangedKeys(KeyReader& keys, const RangeTable& table) : keys_(keys), table_(table) {}

  int Int(const std::string& key, std::optional<int> fallback = {});
  // Where another number, `most`, narrows the range.
  int IntTo(int most, const std::string& key, std::optional<int> fallback = {});
  double Number(const std::string& key, std::optional<double> fallback = {});
  // least ... most integers.
  std::vector<int> Ints(const std::string& key, size_t least, size_t most);

 private:
  const NumberRange& RangeOf(const std::string& key) const;

  KeyReader& keys_;
  const RangeTable& table_;
};

}  // namespace mjp

#endif  // POLICY_RANGES_CONFIG_RANGES_H_
