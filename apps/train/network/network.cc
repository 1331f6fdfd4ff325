#include "apps/train/network/network.h"

#include "base/error.h"

namespace mjp::app {
namespace {

constexpr int kFinalGroups = 8;  // of the U-Net's last norm, whatever the config says
const std::string kUnet = "diffusion.unet.";

}  // namespace

Network::Network(const mjp::UnetPolicyConfig& config, const Parameters& parameters, bool fused,
                 const mjp::DitConfig* dit)
    : Layers(parameters, fused),
      config_(config),
      encoder_(dit != nullptr ? "observation_encoder.rgb_encoder." : "diffusion.rgb_encoder.") {
  if (dit != nullptr) dit_.emplace(*dit, parameters);
  if (!config.unet.film_scale || !config.encoder.group_norm || config.encoder.separate_per_camera) {
    throw mjp::Unsupported(
        "mjpolicy-train: only GroupNorm, FiLM with scale and one encoder for all cameras can be "
        "trained");
  }
  step_embedding_ = StepEmbedding(config.scheduler.train_steps, config.unet.step_embed_dim)
                        .to(parameters.device());
}

at::Tensor Network::Upsample(const std::string& name, const at::Tensor& x) const {
  return at::conv_transpose2d(x, Parameter(name + ".weight"), Parameter(name + ".bias"),
                              /*stride=*/{1, 2}, /*padding=*/{0, 1});
}

at::Tensor Network::Encode(const at::Tensor& pictures) const {
  const mjp::EncoderConfig& encoder = config_.encoder;
  // tensor cores want channels in eights: zeros beside the three colours
  const auto pad = [](const at::Tensor& x) { return at::constant_pad_nd(x, {0, 0, 0, 0, 0, 5}); };
  const at::Tensor& stem = Parameter(encoder_ + "backbone.0.weight");
  const int64_t stride = encoder.stem_stride, border = (stem.size(2) - 1) / 2;
  at::Tensor map = at::conv2d(pad(pictures), pad(stem), {}, {stride, stride}, {border, border});
  map = Activate(Norm(encoder_ + "backbone.1", map, encoder.stem_groups, Activation::kRelu));
  if (encoder.stem_max_pool) map = at::max_pool2d(map, {3, 3}, {2, 2}, {1, 1});
  for (size_t stage = 0; stage < encoder.stage_channels.size(); ++stage) {
    for (int i = 0; i < encoder.blocks_per_stage; ++i) {
      const std::string name =
          encoder_ + "backbone." + std::to_string(stage + 4) + "." + std::to_string(i);
      map = BasicBlock(name, map, i == 0 ? encoder.stage_strides[stage] : 1);
    }
  }
  if (encoder.pool == mjp::PoolKind::kAverage) return map.mean({2, 3});
  const at::Tensor feature = Linear(encoder_ + "out", Pool(map));
  return encoder.feature_relu ? at::relu(feature) : feature;
}

at::Tensor Network::BasicBlock(const std::string& name, const at::Tensor& x, int64_t stride) const {
  at::Tensor y = Conv(name + ".conv1", x, stride, /*bias=*/false);
  const int64_t groups = y.size(1) / config_.encoder.channels_per_group;
  y = Activate(Norm(name + ".bn1", y, groups, Activation::kRelu));
  y = Conv(name + ".conv2", y, 1, /*bias=*/false);
  NormActInput last = Norm(name + ".bn2", y, groups, Activation::kRelu);
  last.residual = x;
  if (stride != 1 || x.size(1) != y.size(1)) {
    const at::Tensor skip = Conv(name + ".downsample.0", x, stride, /*bias=*/false);
    last.residual = Activate(Norm(name + ".downsample.1", skip, groups, Activation::kNone));
  }
  return Activate(last);
}

at::Tensor Network::Pool(const at::Tensor& map) const {
  const at::Tensor maps = Conv(encoder_ + "pool.nets", map, 1);
  if (config_.encoder.pool == mjp::PoolKind::kFlatten) return at::relu(maps).flatten(1);
  const at::Tensor attention = at::softmax(maps.flatten(2), 2, at::kFloat);
  const at::Tensor keypoints = at::matmul(attention, Parameter(encoder_ + "pool.pos_grid"));
  return keypoints.flatten(1).to(maps.scalar_type());
}

at::Tensor Network::Auxiliary(const at::Tensor& features) const {
  return Linear("auxiliary", features);
}

at::Tensor Network::Denoise(const at::Tensor& x, const at::Tensor& t,
                            const at::Tensor& cond) const {
  if (dit_) return dit_->Denoise(x, t, cond);
  const int levels = static_cast<int>(config_.unet.down_dims.size());
  const int64_t groups = config_.unet.groups;
  at::Tensor embedding = step_embedding_.index_select(0, t).to(cond.scalar_type());
  embedding = at::mish(Linear(kUnet + "diffusion_step_encoder.1", embedding));
  embedding = Linear(kUnet + "diffusion_step_encoder.3", embedding);
  const at::Tensor film_input = at::mish(at::cat({embedding, cond}, 1));

  // (B, H, A) is (B, A, 1, H) channel-last
  at::Tensor h = x.unsqueeze(1).permute({0, 3, 1, 2});
  std::vector<at::Tensor> skips;
  for (int i = 0; i < levels; ++i) {
    const std::string level = kUnet + "down_modules." + std::to_string(i) + ".";
    h = ResidualBlock(level + "0", h, film_input, groups);
    h = ResidualBlock(level + "1", h, film_input, groups);
    skips.push_back(h);
    if (i + 1 < levels) h = Conv(level + "2", h, 2);
  }
  h = ResidualBlock(kUnet + "mid_modules.0", h, film_input, groups);
  h = ResidualBlock(kUnet + "mid_modules.1", h, film_input, groups);
  for (int i = 0; i + 1 < levels; ++i) {
    const std::string level = kUnet + "up_modules." + std::to_string(i) + ".";
    h = ResidualBlock(level + "0", at::cat({h, skips.back()}, 1), film_input, groups);
    skips.pop_back();
    h = ResidualBlock(level + "1", h, film_input, groups);
    h = Upsample(level + "2", h);
  }
  h = Activate(Norm(kUnet + "final_conv.0.block.1", Conv(kUnet + "final_conv.0.block.0", h, 1),
                    kFinalGroups, Activation::kMish));
  h = Conv(kUnet + "final_conv.1", h, 1);
  return h.permute({0, 2, 3, 1}).squeeze(1);
}

}  // namespace mjp::app
