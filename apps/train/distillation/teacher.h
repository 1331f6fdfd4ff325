#ifndef APPS_TRAIN_DISTILLATION_TEACHER_H_
#define APPS_TRAIN_DISTILLATION_TEACHER_H_

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "apps/train/network/architectures.h"
#include "apps/train/network/network.h"
#include "apps/train/optimisation/parameters.h"
#include "kernels/shared/denoise.h"
#include "policy/checkpoint/network.h"

namespace mjp::app {

// The tensors of a policy by LeRobot's names, as Parameters takes them.
NamedTensors TensorsOf(const mjp::Checkpoint& policy);

// A policy for Push-T that is not trained any more: its DDIM chain from noise to actions, which is
// a function of noise and observation.
class Teacher {
 public:
  // `steps` of the chain. Throws Error for a checkpoint that is not of Push-T's pictures, crops
  // them, or is a student itself.
  Teacher(const std::shared_ptr<const mjp::Checkpoint>& checkpoint, int steps,
          const at::Device& device, at::ScalarType type);

  // pictures (N, 3, 96, 96) as PreparePictures makes them -> features (N, feature_dim).
  at::Tensor Encode(const at::Tensor& pictures) const { return network_.Encode(pictures); }

  // Normalised actions (B, H, 2), float32, from `noise` (B, H, 2), float32, and cond (B,
  // CondDim()). A CUDA graph may replay it.
  at::Tensor Chunk(const at::Tensor& noise, const at::Tensor& cond) const;

 private:
  mjp::UnetPolicyConfig config_;
  Parameters parameters_;
  Network network_;
  std::vector<DenoiseStep> schedule_;
  std::vector<at::Tensor> timesteps_;  // of each step: scalars, int64
};

// The student of `teacher`, without weights: the same networks, one pass.
Architecture StudentOf(const mjp::Checkpoint& teacher, const Execution& execution);

}  // namespace mjp::app

#endif  // APPS_TRAIN_DISTILLATION_TEACHER_H_
