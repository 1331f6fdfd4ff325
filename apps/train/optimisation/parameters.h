#ifndef APPS_TRAIN_OPTIMISATION_PARAMETERS_H_
#define APPS_TRAIN_OPTIMISATION_PARAMETERS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/train/network/architectures.h"
#include "policy/checkpoint/network.h"
#include "policy/unet/network_builder.h"

namespace mjp::app {

using NamedTensors = std::vector<std::pair<std::string, mjp::Tensor>>;

// Initial weights as the original libraries draw them: PyTorch's defaults, and for a picture
// encoder's convolutions torchvision's ResNet rule. A bias follows the matrix asked for before it.
std::unique_ptr<mjp::TensorSource> MakeInitialWeights(uint64_t seed);

// All parameters of a network in one flat float32 vector (P), with a working copy of lower
// precision that the network computes with. Optimiser, average and exchange between GPUs thus see
// one vector. Convolutions are stored channel-last; matrices come first, then the vectors (not
// decayed).
class Parameters {
 public:
  // Draws initial weights for `policy` from `seed`, adds the auxiliary head
  // that reads `auxiliary_outputs` numbers off each picture's feature, and puts all on `device`.
  Parameters(const Architecture& policy, int auxiliary_outputs, uint64_t seed,
             const at::Device& device, at::ScalarType working_type);

  // The same for any network, given its initial tensors, and with convolutions in any layout.
  Parameters(NamedTensors initial, const at::Device& device, at::ScalarType working_type,
             at::MemoryFormat layout = at::MemoryFormat::ChannelsLast);

  // Parameter by its name (a policy's: LeRobot's), in the working type; 1-D convolutions are (out,
  // in, 1, k). Throws Error for a name that the policy does not have.
  const at::Tensor& operator[](const std::string& name) const;

  at::Tensor& master() { return master_; }  // (P), float32
  const at::Tensor& master() const { return master_; }
  at::Tensor& gradient() { return gradient_; }  // (P), working type; backward() adds to it
  int64_t size() const { return master_.numel(); }
  int64_t matrix_elements() const { return matrix_elements_; }
  const at::Device& device() const { return device_; }
  // What the flat vector is made of: a hash of the names and shapes, in their order.
  std::string layout() const;

  // No gradients from here on: for inference alone.
  void Freeze();

  // Rounds the master vector into the working copy.
  void UpdateWorkingCopy();

  // Hands over the values of `flat` (P) by name. The parameters must outlive the source.
  std::unique_ptr<mjp::TensorSource> Source(const at::Tensor& flat) const;

  // `policy` with the weights of `flat` (P), without the auxiliary head.
  mjp::Checkpoint Export(const Architecture& policy, const at::Tensor& flat) const;

 private:
  struct Slot {
    std::string name;
    std::vector<int64_t> shape;  // as in the checkpoint
    int64_t offset = 0, count = 0;
  };
  at::Tensor View(const at::Tensor& flat, const Slot& slot) const;
  void MakeLeaves();

  at::Device device_;
  at::MemoryFormat layout_;
  std::vector<Slot> slots_;
  int64_t matrix_elements_ = 0;
  at::Tensor master_, working_, gradient_;
  std::unordered_map<std::string, at::Tensor> leaves_, constants_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTIMISATION_PARAMETERS_H_
