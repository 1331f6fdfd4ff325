#include "policy/ranges/config_ranges.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace mjp {
namespace {

// Of whatever is a size: a width, a picture's side, a vector.
constexpr double kMostSize = 8192;
constexpr double kMostLayers = 64;
constexpr double kMostSteps = 1000;

constexpr NumberRange kFeature[] = {{"shape", 1, kMostSize}};

// Betas: with less than 1e-6 what is left of the signal rounds to 1 in fp32, and 0 / 0 follows.
constexpr NumberRange kScheduler[] = {
    {"num_train_timesteps", 1, kMostSteps},
    {"num_inference_steps", 1, kMostSteps},
    {"beta_start", 1e-6, 0.999},
    {"beta_end", 1e-6, 0.999},
    {"clip_sample_range", 1e-6, 1e6},
    {"temperature", 0, 2},
};

// Keys that a U-Net's policy and `multi_task_dit` share.
constexpr NumberRange kReplanning[] = {
    {"replan_every", 1, 4096},
    {"replan_beyond", 0, 1e9},
};

constexpr NumberRange kUnet[] = {
    {"n_obs_steps", 1, 64},
    {"horizon", 1, 4096},
    {"n_action_steps", 1, 4096},
    {"down_dims", 8, kMostSize},
    {"kernel_size", 1, 15},
    {"n_groups", 1, kMostSize},
    {"diffusion_step_embed_dim", 4, kMostSize},
    {"spatial_softmax_num_keypoints", 1, kMostSize / 2},
    {"crop_ratio", 1e-3, 1},
    {"crop_shape", 1, kMostSize},
    {"resize_shape", 1, kMostSize},
};

constexpr NumberRange kCompact[] = {
    {"stem_channels", 1, kMostSize},
    {"stem_kernel", 1, 15},
    {"stem_stride", 1, 8},
    {"stem_groups", 1, kMostSize},
    {"stage_channels", 1, kMostSize},
    {"stage_strides", 1, 8},
    {"blocks_per_stage", 1, 16},
    {"channels_per_group", 1, kMostSize},
    {"pool_channels", 1, kMostSize},
    {"feature_dim", 1, kMostSize},
};

constexpr NumberRange kAct[] = {
    {"n_obs_steps", 1, 1},
    {"chunk_size", 1, 4096},
    {"n_action_steps", 1, 4096},
    {"temporal_ensemble_coeff", -10, 10},
    {"dim_model", 4, kMostSize},
    {"n_heads", 1, kMostSize},
    {"dim_feedforward", 1, 4 * kMostSize},
    {"n_encoder_layers", 1, kMostLayers},
    {"n_decoder_layers", 1, kMostLayers},
    {"latent_dim", 1, kMostSize},
    {"n_vae_encoder_layers", 1, kMostLayers},
};

constexpr NumberRange kDit[] = {
    {"n_obs_steps", 1, 64},
    {"horizon", 1, 512},
    {"n_action_steps", 1, 512},
    {"num_integration_steps", 1, kMostSteps},
    {"hidden_dim", 1, kMostSize},
    {"num_layers", 1, kMostLayers},
    {"num_heads", 1, kMostSize},
    {"timestep_embed_dim", 4, kMostSize},
    {"rope_base", 1, 1e9},
    {"image_resize_shape", 1, kMostSize},
    {"image_crop_shape", 1, kMostSize},
    {"tokenizer_max_length", 2, kMostSize},
};

}  // namespace

constinit const RangeTable kFeatureRanges = {"a feature", kFeature};
constinit const RangeTable kSchedulerRanges = {"the noise schedule", kScheduler};
constinit const RangeTable kReplanningRanges = {"replanning", kReplanning};
constinit const RangeTable kUnetRanges = {"a U-Net's policy", kUnet};
constinit const RangeTable kCompactRanges = {"`compact_encoder`", kCompact};
constinit const RangeTable kActRanges = {"`act`", kAct};
constinit const RangeTable kDitRanges = {"`multi_task_dit`", kDit};

std::span<const RangeTable* const> AllConfigRanges() {
  static constexpr const RangeTable* kAll[] = {
      &kFeatureRanges, &kSchedulerRanges, &kReplanningRanges, &kUnetRanges,
      &kCompactRanges, &kActRanges,       &kDitRanges};
  return kAll;
}

const NumberRange& RangedKeys::RangeOf(const std::string& key) const {
  for (const NumberRange& row : table_.rows) {
    if (row.key == key) return row;
  }
  throw std::out_of_range("no range of \"" + key + "\" in the table of " +
                          std::string(table_.name));
}

int RangedKeys::Int(const std::string& key, std::optional<int> fallback) {
  return IntTo(std::numeric_limits<int>::max(), key, fallback);
}

int RangedKeys::IntTo(int most, const std::string& key, std::optional<int> fallback) {
  const NumberRange& range = RangeOf(key);
  return keys_.Int(key, static_cast<int>(range.low), std::min(static_cast<int>(range.high), most),
                   fallback);
}

double RangedKeys::Number(const std::string& key, std::optional<double> fallback) {
  const NumberRange& range = RangeOf(key);
  return keys_.Number(key, range.low, range.high, fallback);
}

std::vector<int> RangedKeys::Ints(const std::string& key, size_t least, size_t most) {
  const NumberRange& range = RangeOf(key);
  return keys_.Ints(key, least, most, static_cast<int>(range.low), static_cast<int>(range.high));
}

}  // namespace mjp
