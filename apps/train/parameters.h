#ifndef APPS_TRAIN_PARAMETERS_H_
#define APPS_TRAIN_PARAMETERS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/network.h"

namespace pusht {

// All parameters of a policy in one flat float32 vector (P), with a working copy of lower precision
// that the network computes with. Optimiser, average and exchange between GPUs thus see one vector.
// Convolutions are stored channel-last; matrices come first, then the vectors (not decayed).
class Parameters {
 public:
  // Draws initial weights for `policy` (its config counts) from `seed`, adds the auxiliary head
  // that reads `auxiliary_outputs` numbers off each picture's feature, and puts all on `device`.
  Parameters(const dp::Checkpoint& policy, int auxiliary_outputs, uint64_t seed,
             const at::Device& device, at::ScalarType working_type);

  // Parameter by LeRobot's name, in the working type; 1-D convolutions are (out, in, 1, k).
  // Throws Error for a name that the policy does not have.
  const at::Tensor& operator[](const std::string& name) const;

  at::Tensor& master() { return master_; }  // (P), float32
  const at::Tensor& master() const { return master_; }
  at::Tensor& gradient() { return gradient_; }  // (P), working type; backward() adds to it
  int64_t size() const { return master_.numel(); }
  int64_t matrix_elements() const { return matrix_elements_; }
  const at::Device& device() const { return device_; }

  // Rounds the master vector into the working copy.
  void UpdateWorkingCopy();

  // `policy` with the weights of `flat` (P), without the auxiliary head.
  dp::Checkpoint Export(const dp::Checkpoint& policy, const at::Tensor& flat) const;

 private:
  struct Slot {
    std::string name;
    std::vector<int64_t> shape;  // as in the checkpoint
    int64_t offset = 0, count = 0;
  };
  at::Tensor View(const at::Tensor& flat, const Slot& slot) const;
  void MakeLeaves();

  at::Device device_;
  std::vector<Slot> slots_;
  int64_t matrix_elements_ = 0;
  at::Tensor master_, working_, gradient_;
  std::unordered_map<std::string, at::Tensor> leaves_, constants_;
};

}  // namespace pusht

#endif  // APPS_TRAIN_PARAMETERS_H_
