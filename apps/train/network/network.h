#ifndef APPS_TRAIN_NETWORK_NETWORK_H_
#define APPS_TRAIN_NETWORK_NETWORK_H_

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "apps/train/network/dit_denoiser.h"
#include "apps/train/network/layers.h"
#include "policy/checkpoint/config.h"

namespace mjp::app {

// The differentiable twin of the policy's networks: picture encoder, conditional U-Net or
// transformer, and the auxiliary head that exists in training only. Everything inside is
// channel-last; a sequence is a picture of height 1. B = samples, N = pictures, H = horizon, A =
// action_dim.
class Network : private Layers {
 public:
  // All must outlive the network; `fused` as for Layers. With `dit` its transformer is in the
  // U-Net's place. Throws Error for a config that cannot be trained here.
  Network(const mjp::UnetPolicyConfig& config, const Parameters& parameters, bool fused = true,
          const mjp::DitConfig* dit = nullptr);

  // pictures (N, 3, height, width), normalised and cropped -> features (N, feature_dim).
  at::Tensor Encode(const at::Tensor& pictures) const;

  // features (N, feature_dim) -> (N, auxiliary outputs).
  at::Tensor Auxiliary(const at::Tensor& features) const;

  // What the network tells of x (B, H, A) at timesteps t (B), int64, or a transformer's times of a
  // flow, given cond (B, CondDim()) -> (B, H, A).
  at::Tensor Denoise(const at::Tensor& x, const at::Tensor& t, const at::Tensor& cond) const;

 private:
  at::Tensor Upsample(const std::string& name, const at::Tensor& x) const;
  at::Tensor BasicBlock(const std::string& name, const at::Tensor& x, int64_t stride) const;
  at::Tensor Pool(const at::Tensor& map) const;

  const mjp::UnetPolicyConfig& config_;
  std::string encoder_;  // begins the names of its parameters
  std::optional<DitDenoiser> dit_;
  at::Tensor step_embedding_;  // (train_steps, step_embed_dim), float32
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_NETWORK_NETWORK_H_
