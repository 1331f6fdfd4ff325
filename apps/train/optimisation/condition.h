#ifndef APPS_TRAIN_OPTIMISATION_CONDITION_H_
#define APPS_TRAIN_OPTIMISATION_CONDITION_H_

#include <ATen/ATen.h>

#include "apps/train/data/dataset.h"
#include "policy/checkpoint/config.h"

namespace mjp::app {

// What the U-Net sees of Push-T: (B * draws, CondDim()) of states (B * To, 5), of which the agent's
// position counts, and features (B * To, feature_dim); each of the B observations `draws` times.
inline at::Tensor ConditionOf(const mjp::UnetPolicyConfig& config, const at::Tensor& states,
                              const at::Tensor& features, int64_t draws, at::ScalarType type) {
  const int64_t batch = states.size(0) / config.n_obs_steps;
  const at::Tensor agent = NormalisePixels(states.narrow(1, 0, 2)).to(type);
  return at::cat({agent, features}, 1)
      .view({batch, config.CondDim()})
      .repeat_interleave(draws, 0, batch * draws);
}

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTIMISATION_CONDITION_H_
