#include "apps/train/network/layers.h"

#include <cmath>
#include <optional>

namespace mjp::app {

at::Tensor StepEmbedding(int64_t steps, int64_t dim) {
  const int64_t half = dim / 2;
  const at::Tensor frequency =
      at::exp(at::arange(half, at::kFloat) * (-std::log(10000.0) / static_cast<double>(half - 1)));
  const at::Tensor phase = at::arange(steps, at::kFloat).unsqueeze(1) * frequency;
  return at::cat({phase.sin(), phase.cos()}, 1);
}

at::Tensor Layers::Linear(const std::string& name, const at::Tensor& x) const {
  return at::linear(x, parameters_[name + ".weight"], parameters_[name + ".bias"]);
}

at::Tensor Layers::Conv(const std::string& name, const at::Tensor& x, int64_t stride,
                        bool bias) const {
  at::Tensor weight = parameters_[name + ".weight"];
  const int64_t more = x.size(1) - weight.size(1);
  if (more > 0) weight = at::constant_pad_nd(weight, {0, 0, 0, 0, 0, more});
  const int64_t height = weight.size(2), width = weight.size(3);
  const std::optional<at::Tensor> offset =
      bias ? std::optional(parameters_[name + ".bias"]) : std::nullopt;
  const int64_t vertical = height == 1 && x.size(2) == 1 ? 1 : stride;
  return at::conv2d(x, weight, offset, {vertical, stride}, {(height - 1) / 2, (width - 1) / 2});
}

NormActInput Layers::Norm(const std::string& name, const at::Tensor& x, int64_t groups,
                          Activation activation) const {
  return {x, parameters_[name + ".weight"], parameters_[name + ".bias"], groups, activation, {},
          {}};
}

at::Tensor Layers::ResidualBlock(const std::string& name, const at::Tensor& x,
                                 const at::Tensor& cond, int64_t groups) const {
  NormActInput first =
      Norm(name + ".conv1.block.1", Conv(name + ".conv1.block.0", x, 1), groups, Activation::kMish);
  first.film = Linear(name + ".cond_encoder.1", cond);
  const at::Tensor y = Activate(first);
  NormActInput second =
      Norm(name + ".conv2.block.1", Conv(name + ".conv2.block.0", y, 1), groups, Activation::kMish);
  second.residual = x.size(1) == y.size(1) ? x : Conv(name + ".residual_conv", x, 1);
  return Activate(second);
}

}  // namespace mjp::app
