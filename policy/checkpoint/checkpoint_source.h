#ifndef POLICY_CHECKPOINT_CHECKPOINT_SOURCE_H_
#define POLICY_CHECKPOINT_CHECKPOINT_SOURCE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/safetensors.h"

namespace mjp {

// The tensors of a model.safetensors, each handed over once. torch.compile's "_orig_mod." within a
// name is not part of it.
class CheckpointSource : public TensorSource {
 public:
  // `file` must outlive the source.
  explicit CheckpointSource(const SafetensorsFile& file);

  // Throws Error unless the file has every tensor that `network` will take, of its shape, and
  // nothing else but what is of training alone, statistics and counters, which are small: the
  // header alone tells, so a foreign or absurd file is refused before its data is read.
  static void CheckHeader(const SafetensorsFile& header, const NetworkModel& network);

  // Throws Error if the tensor is missing, of another shape, taken before, or not finite.
  Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override;
  void Discard(const std::string& name) override;

  bool Has(const std::string& name) const { return rest_.contains(name); }
  bool HasPrefix(const std::string& prefix) const override;
  std::vector<int64_t> ShapeOf(const std::string& name) const override;
  // A small tensor's values, whatever its shape; none if it is not there.
  std::vector<float> TakeIfThere(const std::string& name);
  // Throws Error if a tensor is left over.
  void CheckAllTaken() const;

 private:
  // The tensor as the file has it. Throws Error if it is missing or not of `shape`.
  const TensorEntry& Entry(const std::string& name, const std::vector<int64_t>& shape) const;

  const SafetensorsFile& file_;
  std::map<std::string, std::string> rest_;  // names as asked for -> names in the file
};

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_CHECKPOINT_SOURCE_H_
