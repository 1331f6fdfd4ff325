#ifndef TESTS_POLICY_DIT_COMPACT_DIT_H_
#define TESTS_POLICY_DIT_COMPACT_DIT_H_

#include <memory>

#include "policy/checkpoint/random_checkpoint.h"
#include "policy/dit/dit_model.h"

namespace mjp_test {

// A dit_compact small enough for any test: `cameras` of 40x32, an encoder of 16 and 32 channels.
inline mjp::DitConfig CompactDitConfig(mjp::DitObjective objective, int cameras = 1) {
  mjp::DitConfig config;
  config.type = mjp::kCompactDit;
  config.horizon = 8;
  config.n_action_steps = 4;
  for (int i = 0; i < cameras; ++i)
    config.cameras.push_back({"observation.images." + std::to_string(i), 3, 32, 40});
  config.state_dim = 3;
  config.action_dim = 2;
  config.objective = objective;
  config.scheduler.train_steps = 20;
  config.scheduler.inference_steps = 10;
  config.integration_steps = 6;
  config.hidden = 64, config.layers = 2, config.heads = 2;
  config.time_embed = 32;
  config.encoder = mjp::CompactEncoderConfig();
  config.encoder->stem_channels = 16;
  config.encoder->stage_channels = {16, 32};
  config.encoder->stage_strides = {2, 2};
  config.encoder->pool_channels = 8;
  config.encoder->feature_dim = 24;
  return config;
}

inline mjp::NormalizerStats CompactDitStats(const mjp::DitConfig& config) {
  mjp::NormalizerStats stats;
  for (size_t i = 0; i < config.cameras.size(); ++i) {
    const float of = 0.2f * static_cast<float>(i);  // each camera has its own
    stats.cameras.push_back({mjp::Normalization::kMeanStd,
                             {0.5f - of, 0.4f + of, 0.3f + of},
                             {0.2f + of, 0.25f + of, 0.3f - of / 2}});
  }
  stats.state = {mjp::Normalization::kMinMax, {-1, -2, -3}, {1, 2, 3}};
  stats.action = {mjp::Normalization::kMinMax, {-1, 0}, {1, 4}};
  return stats;
}

// The policy with random weights.
inline std::shared_ptr<const mjp::Checkpoint> CompactDit(const mjp::DitConfig& config) {
  auto model = std::make_shared<mjp::DitModel>();
  model->config = config;
  const auto source = mjp::MakeRandomSource(5);
  return mjp::MadeCheckpoint(config, CompactDitStats(config), std::move(model), *source, "compact");
}

}  // namespace mjp_test

#endif  // TESTS_POLICY_DIT_COMPACT_DIT_H_
