#ifndef APPS_TRAIN_NETWORK_DIT_DENOISER_H_
#define APPS_TRAIN_NETWORK_DIT_DENOISER_H_

#include <ATen/ATen.h>

#include <string>

#include "apps/train/network/layers.h"
#include "policy/dit/dit_config.h"

namespace mjp::app {

// The differentiable twin of the denoising transformer (policy/dit/trunk.h; W. Peebles, S. Xie,
// "Scalable Diffusion Models with Transformers", 2023). B = samples, H = horizon, A = action_dim,
// D = hidden.
class DitDenoiser : private Layers {
 public:
  // Both must outlive it.
  DitDenoiser(const mjp::DitConfig& config, const Parameters& parameters);

  // What the network tells of x (B, H, A) at times t (B), numbers of any type, given cond
  // (B, CondDim()) -> (B, H, A).
  at::Tensor Denoise(const at::Tensor& x, const at::Tensor& t, const at::Tensor& cond) const;

 private:
  at::Tensor TimeFeatures(const at::Tensor& t, at::ScalarType type) const;
  at::Tensor Attend(const std::string& name, const at::Tensor& x) const;
  // Of (B, heads, H, D / heads).
  at::Tensor Rotate(const at::Tensor& x) const;

  const mjp::DitConfig& config_;
  at::Tensor frequencies_;      // (time_embed / 2), float32
  at::Tensor cosines_, sines_;  // (H, head size / 2), float32
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_NETWORK_DIT_DENOISER_H_
