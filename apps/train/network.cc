#include "apps/train/network.h"

#include <cmath>

#include "kernels/error.h"

namespace pusht {
namespace {

constexpr int kFinalGroups = 8;  // of the U-Net's last norm, whatever the config says
const std::string kEncoder = "diffusion.rgb_encoder.";
const std::string kUnet = "diffusion.unet.";

// (steps, dim): sin(t f), cos(t f) with f from 1 to 1e-4
at::Tensor StepEmbedding(int64_t steps, int64_t dim) {
  const int64_t half = dim / 2;
  const at::Tensor frequency =
      at::exp(at::arange(half, at::kFloat) * (-std::log(10000.0) / static_cast<double>(half - 1)));
  const at::Tensor phase = at::arange(steps, at::kFloat).unsqueeze(1) * frequency;
  return at::cat({phase.sin(), phase.cos()}, 1);
}

}  // namespace

Network::Network(const dp::PolicyConfig& config, const Parameters& parameters)
    : config_(config), parameters_(parameters) {
  if (!config.unet.film_scale || !config.encoder.group_norm || config.cameras.size() != 1 ||
      config.encoder.pool == dp::PoolKind::kAverage || config.environment_dim != 0) {
    throw dp::Unsupported(
        "pusht-train: only one camera, GroupNorm, spatial softmax or flatten, and FiLM with scale "
        "can be trained");
  }
  step_embedding_ = StepEmbedding(config.scheduler.train_steps, config.unet.step_embed_dim)
                        .to(parameters.device());
}

at::Tensor Network::Linear(const std::string& name, const at::Tensor& x) const {
  return at::linear(x, parameters_[name + ".weight"], parameters_[name + ".bias"]);
}

// "same" padding for odd kernels
at::Tensor Network::Conv(const std::string& name, const at::Tensor& x, int64_t stride,
                         bool bias) const {
  const at::Tensor& weight = parameters_[name + ".weight"];
  const int64_t height = weight.size(2), width = weight.size(3);
  const std::optional<at::Tensor> offset =
      bias ? std::optional(parameters_[name + ".bias"]) : std::nullopt;
  const int64_t vertical = height == 1 && x.size(2) == 1 ? 1 : stride;
  return at::conv2d(x, weight, offset, {vertical, stride}, {(height - 1) / 2, (width - 1) / 2});
}

at::Tensor Network::Upsample(const std::string& name, const at::Tensor& x) const {
  return at::conv_transpose2d(x, parameters_[name + ".weight"], parameters_[name + ".bias"],
                              /*stride=*/{1, 2}, /*padding=*/{0, 1});
}

NormActInput Network::Norm(const std::string& name, const at::Tensor& x, int64_t groups,
                           Activation activation) const {
  return {x, parameters_[name + ".weight"], parameters_[name + ".bias"], groups, activation, {},
          {}};
}

at::Tensor Network::Encode(const at::Tensor& pictures) const {
  const dp::EncoderConfig& encoder = config_.encoder;
  // tensor cores want channels in eights: zeros beside the three colours
  const auto pad = [](const at::Tensor& x) { return at::constant_pad_nd(x, {0, 0, 0, 0, 0, 5}); };
  const at::Tensor& stem = parameters_[kEncoder + "backbone.0.weight"];
  const int64_t stride = encoder.stem_stride, border = (stem.size(2) - 1) / 2;
  at::Tensor map = at::conv2d(pad(pictures), pad(stem), {}, {stride, stride}, {border, border});
  map = NormAct(Norm(kEncoder + "backbone.1", map, encoder.stem_groups, Activation::kRelu));
  if (encoder.stem_max_pool) map = at::max_pool2d(map, {3, 3}, {2, 2}, {1, 1});
  for (size_t stage = 0; stage < encoder.stage_channels.size(); ++stage) {
    for (int i = 0; i < encoder.blocks_per_stage; ++i) {
      const std::string name =
          kEncoder + "backbone." + std::to_string(stage + 4) + "." + std::to_string(i);
      map = BasicBlock(name, map, i == 0 ? encoder.stage_strides[stage] : 1);
    }
  }
  const at::Tensor feature = Linear(kEncoder + "out", Pool(map));
  return encoder.feature_relu ? at::relu(feature) : feature;
}

at::Tensor Network::BasicBlock(const std::string& name, const at::Tensor& x, int64_t stride) const {
  at::Tensor y = Conv(name + ".conv1", x, stride, /*bias=*/false);
  const int64_t groups = y.size(1) / config_.encoder.channels_per_group;
  y = NormAct(Norm(name + ".bn1", y, groups, Activation::kRelu));
  y = Conv(name + ".conv2", y, 1, /*bias=*/false);
  NormActInput last = Norm(name + ".bn2", y, groups, Activation::kRelu);
  last.residual = x;
  if (stride != 1 || x.size(1) != y.size(1)) {
    const at::Tensor skip = Conv(name + ".downsample.0", x, stride, /*bias=*/false);
    last.residual = NormAct(Norm(name + ".downsample.1", skip, groups, Activation::kNone));
  }
  return NormAct(last);
}

at::Tensor Network::Pool(const at::Tensor& map) const {
  const at::Tensor maps = Conv(kEncoder + "pool.nets", map, 1);
  if (config_.encoder.pool == dp::PoolKind::kFlatten) return at::relu(maps).flatten(1);
  const at::Tensor attention = at::softmax(maps.flatten(2), 2, at::kFloat);
  const at::Tensor keypoints = at::matmul(attention, parameters_[kEncoder + "pool.pos_grid"]);
  return keypoints.flatten(1).to(maps.scalar_type());
}

at::Tensor Network::Auxiliary(const at::Tensor& features) const {
  return Linear("auxiliary", features);
}

at::Tensor Network::ResidualBlock(const std::string& name, const at::Tensor& x,
                                  const at::Tensor& cond) const {
  const int64_t groups = config_.unet.groups;
  NormActInput first =
      Norm(name + ".conv1.block.1", Conv(name + ".conv1.block.0", x, 1), groups, Activation::kMish);
  first.film = Linear(name + ".cond_encoder.1", cond);
  const at::Tensor y = NormAct(first);
  NormActInput second =
      Norm(name + ".conv2.block.1", Conv(name + ".conv2.block.0", y, 1), groups, Activation::kMish);
  second.residual = x.size(1) == y.size(1) ? x : Conv(name + ".residual_conv", x, 1);
  return NormAct(second);
}

at::Tensor Network::Denoise(const at::Tensor& x, const at::Tensor& t,
                            const at::Tensor& cond) const {
  const int levels = static_cast<int>(config_.unet.down_dims.size());
  at::Tensor embedding = step_embedding_.index_select(0, t).to(cond.scalar_type());
  embedding = at::mish(Linear(kUnet + "diffusion_step_encoder.1", embedding));
  embedding = Linear(kUnet + "diffusion_step_encoder.3", embedding);
  const at::Tensor film_input = at::mish(at::cat({embedding, cond}, 1));

  // (B, H, A) is (B, A, 1, H) channel-last
  at::Tensor h = x.unsqueeze(1).permute({0, 3, 1, 2});
  std::vector<at::Tensor> skips;
  for (int i = 0; i < levels; ++i) {
    const std::string level = kUnet + "down_modules." + std::to_string(i) + ".";
    h = ResidualBlock(level + "0", h, film_input);
    h = ResidualBlock(level + "1", h, film_input);
    skips.push_back(h);
    if (i + 1 < levels) h = Conv(level + "2", h, 2);
  }
  h = ResidualBlock(kUnet + "mid_modules.0", h, film_input);
  h = ResidualBlock(kUnet + "mid_modules.1", h, film_input);
  for (int i = 0; i + 1 < levels; ++i) {
    const std::string level = kUnet + "up_modules." + std::to_string(i) + ".";
    h = ResidualBlock(level + "0", at::cat({h, skips.back()}, 1), film_input);
    skips.pop_back();
    h = ResidualBlock(level + "1", h, film_input);
    h = Upsample(level + "2", h);
  }
  h = NormAct(Norm(kUnet + "final_conv.0.block.1", Conv(kUnet + "final_conv.0.block.0", h, 1),
                   kFinalGroups, Activation::kMish));
  h = Conv(kUnet + "final_conv.1", h, 1);
  return h.permute({0, 2, 3, 1}).squeeze(1);
}

}  // namespace pusht
