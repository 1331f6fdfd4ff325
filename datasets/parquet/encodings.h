#ifndef DATASETS_PARQUET_ENCODINGS_H_
#define DATASETS_PARQUET_ENCODINGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/parquet/metadata.h"

// How values lie in a page: apache/parquet-format, Encodings.md.

namespace mjp::parquet {

// Values of one type, in the member that the type has.
struct Values {
  std::vector<int64_t> ints;            // bool (0, 1), int32, int64
  std::vector<double> numbers;          // float and double, exactly
  std::vector<std::string_view> texts;  // byte arrays, within memory that the owner keeps

  size_t size() const { return ints.size() + numbers.size() + texts.size(); }
};

// Where a page's bytes are read from, front to back. Take throws Error "where: ..." if fewer are
// left.
struct ByteCursor {
  std::span<const uint8_t> bytes;
  const std::string& where;

  std::span<const uint8_t> Take(uint64_t count);
  uint32_t TakeUint32();
};

// Bits that the numbers 0 ... most need.
int BitWidth(uint64_t most);

// Reads `count` numbers of `width` bits, 32 at most, that are run-length encoded or packed.
std::vector<uint32_t> ReadRuns(std::span<const uint8_t> bytes, int width, size_t count,
                               const std::string& where);

// Appends `count` values of a leaf in PLAIN encoding. Texts point into the cursor's bytes. Throws
// Error "where: ..." for types that are not read here, and for integers beyond 2^63 - 1.
void ReadPlain(ByteCursor& cursor, const Leaf& leaf, size_t count, Values& out);

// Appends the dictionary's values that `indices` name.
void ReadFromDictionary(const Values& dictionary, const std::vector<uint32_t>& indices,
                        const std::string& where, Values& out);

// `count` numbers that are all `level`, as one run of `width` bits.
void WriteRun(uint32_t level, size_t count, int width, std::vector<uint8_t>& out);

// `levels`, each below 2^width, as one packed run.
void WritePacked(std::span<const uint8_t> levels, int width, std::vector<uint8_t>& out);

}  // namespace mjp::parquet

#endif  // DATASETS_PARQUET_ENCODINGS_H_
