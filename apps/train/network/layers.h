#ifndef APPS_TRAIN_NETWORK_LAYERS_H_
#define APPS_TRAIN_NETWORK_LAYERS_H_

#include <ATen/ATen.h>

#include <string>

#include "apps/train/network/norm_act.h"
#include "apps/train/optimisation/parameters.h"

namespace mjp::app {

// (steps, dim): sin(t f), cos(t f) with f from 1 to 1e-4, float32 on the CPU.
at::Tensor StepEmbedding(int64_t steps, int64_t dim);

// The differentiable layers that networks are made of, by the names of their parameters. Maps are
// (N, C, H, W), channel-last where `fused`; a sequence is a picture of height 1.
class Layers {
 public:
  // `parameters` must outlive the layers. `fused`: one kernel for a norm and what follows it, else
  // ATen's own operators.
  explicit Layers(const Parameters& parameters, bool fused = true)
      : parameters_(parameters), fused_(fused) {}

 protected:
  const at::Tensor& Parameter(const std::string& name) const { return parameters_[name]; }
  at::Tensor Linear(const std::string& name, const at::Tensor& x) const;
  // "Same" padding, for odd kernels. Channels of x beyond the weight's have no effect.
  at::Tensor Conv(const std::string& name, const at::Tensor& x, int64_t stride,
                  bool bias = true) const;
  NormActInput Norm(const std::string& name, const at::Tensor& x, int64_t groups,
                    Activation activation) const;
  at::Tensor Activate(const NormActInput& input) const {
    return fused_ ? NormAct(input) : NormActReference(input);
  }
  // Mish(GN(conv)) - FiLM(Linear(cond)) - Mish(GN(conv)) + (x or its 1x1 convolution).
  at::Tensor ResidualBlock(const std::string& name, const at::Tensor& x, const at::Tensor& cond,
                           int64_t groups) const;

 private:
  const Parameters& parameters_;
  bool fused_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_NETWORK_LAYERS_H_
