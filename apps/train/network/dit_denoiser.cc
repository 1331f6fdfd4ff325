#include "apps/train/network/dit_denoiser.h"

#include <cmath>
#include <vector>

namespace mjp::app {
namespace {

const std::string kPredictor = "noise_predictor.";
constexpr double kEpsilon = 1e-6;  // of the norms
constexpr int kTerms = 6;          // of a block's modulation

at::Tensor ModulatedNorm(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  return at::layer_norm(x, {x.size(2)}, {}, {}, kEpsilon) * (1 + scale) + shift;
}

}  // namespace

DitDenoiser::DitDenoiser(const mjp::DitConfig& config, const Parameters& parameters)
    : Layers(parameters), config_(config) {
  const int64_t half = config.time_embed / 2, rotated = config.hidden / config.heads / 2;
  frequencies_ =
      at::exp(at::arange(half, at::kFloat) * (-std::log(10000.0) / static_cast<double>(half - 1)))
          .to(parameters.device());
  const at::Tensor speed = at::pow(
      config.rope_base, at::arange(rotated, at::kDouble) * (-1.0 / static_cast<double>(rotated)));
  const at::Tensor angles = at::arange(config.horizon, at::kDouble).unsqueeze(1) * speed;
  cosines_ = angles.cos().to(at::kFloat).to(parameters.device());
  sines_ = angles.sin().to(at::kFloat).to(parameters.device());
}

at::Tensor DitDenoiser::TimeFeatures(const at::Tensor& t, at::ScalarType type) const {
  const at::Tensor angles = t.to(at::kFloat).unsqueeze(1) * frequencies_;
  const at::Tensor waves = at::cat({angles.sin(), angles.cos()}, 1).to(type);
  return at::gelu(
      Linear(kPredictor + "time_mlp.3", at::gelu(Linear(kPredictor + "time_mlp.1", waves))));
}

at::Tensor DitDenoiser::Rotate(const at::Tensor& x) const {
  const std::vector<at::Tensor> half = x.chunk(2, 3);
  const at::Tensor cosines = cosines_.to(x.scalar_type()), sines = sines_.to(x.scalar_type());
  return at::cat({half[0] * cosines - half[1] * sines, half[1] * cosines + half[0] * sines}, 3);
}

at::Tensor DitDenoiser::Attend(const std::string& name, const at::Tensor& x) const {
  const int64_t batch = x.size(0), length = x.size(1), heads = config_.heads;
  const int64_t size = x.size(2) / heads;
  const std::vector<at::Tensor> qkv = Linear(name + "qkv_proj", x)
                                          .view({batch, length, 3, heads, size})
                                          .permute({2, 0, 3, 1, 4})
                                          .unbind(0);
  const at::Tensor scores = at::matmul(Rotate(qkv[0]), Rotate(qkv[1]).transpose(2, 3)) *
                            (1 / std::sqrt(static_cast<double>(size)));
  const at::Tensor shares = at::softmax(scores, 3, at::kFloat).to(x.scalar_type());
  const at::Tensor heads_out = at::matmul(shares, qkv[2]).transpose(1, 2);
  return Linear(name + "out_proj", heads_out.reshape({batch, length, heads * size}));
}

at::Tensor DitDenoiser::Denoise(const at::Tensor& x, const at::Tensor& t,
                                const at::Tensor& cond) const {
  const at::Tensor features = at::silu(at::cat({TimeFeatures(t, x.scalar_type()), cond}, 1));
  at::Tensor h = Linear(kPredictor + "input_proj", x);
  for (int i = 0; i < config_.layers; ++i) {
    const std::string name = kPredictor + "transformer_blocks." + std::to_string(i) + ".";
    const std::vector<at::Tensor> terms =
        Linear(name + "adaLN_modulation.1", features).unsqueeze(1).chunk(kTerms, 2);
    h = h + terms[2] * Attend(name + "attn.", ModulatedNorm(h, terms[0], terms[1]));
    const at::Tensor hidden =
        at::gelu(Linear(name + "mlp.0", ModulatedNorm(h, terms[3], terms[4])), "tanh");
    h = h + terms[5] * Linear(name + "mlp.2", hidden);
  }
  return Linear(kPredictor + "output_proj", h);
}

}  // namespace mjp::app
