#include "tests/support/golden_cases.h"

#include <utility>

#include "policy/network_builder.h"
#include "tests/support/formula_weights.h"

namespace pusht_test {
namespace {

using dp::Normalization;

dp::PolicyConfig PushTConfig() {
  dp::PolicyConfig config;
  config.type = "diffusion";
  config.state_dim = 2;
  config.action_dim = 2;
  return config;
}

dp::NormalizerStats PushTStats() {
  dp::NormalizerStats stats;
  stats.state = {Normalization::kMinMax, {13.456424f, 32.938293f}, {496.14618f, 510.9579f}};
  stats.action = {Normalization::kMinMax, {12.0f, 25.0f}, {511.0f, 511.0f}};
  return stats;
}

std::shared_ptr<const dp::Checkpoint> Build(dp::PolicyConfig config, dp::NormalizerStats stats,
                                            const dp::TensorNames& names) {
  auto checkpoint = std::make_shared<dp::Checkpoint>();
  checkpoint->config = std::move(config);
  checkpoint->stats = std::move(stats);
  checkpoint->directory = "(formula weights)";
  FormulaWeights weights;
  dp::BuildNetwork(names, weights, *checkpoint);
  return checkpoint;
}

}  // namespace

dp::PolicyConfig GoldenConfig(GoldenCase golden) {
  dp::PolicyConfig config = PushTConfig();
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.encoder.kind = dp::EncoderKind::kResNet18;
  switch (golden) {
    case GoldenCase::kLeRobotFull:
    case GoldenCase::kLeRobotCompact:
      config.encoder.crop_height = config.encoder.crop_width = 84;
      if (golden == GoldenCase::kLeRobotCompact) config.unet.down_dims = {128, 256, 512};
      break;
    case GoldenCase::kNotebook:
      config.type = "diffusion_notebook";
      config.encoder.pool = dp::PoolKind::kAverage;
      config.encoder.feature_dim = 512;
      config.encoder.feature_relu = false;
      config.cond_order = dp::CondOrder::kImageState;
      config.unet.down_dims = {256, 512, 1024};
      config.unet.step_embed_dim = 256;
      break;
    case GoldenCase::kLeRobotBatchNorm:
      config.encoder.group_norm = false;
      config.encoder.separate_per_camera = true;
      config.unet.down_dims = {128, 256, 512};
      config.horizon = 64;
      config.n_action_steps = 32;
      break;
  }
  return config;
}

dp::NormalizerStats GoldenStats(GoldenCase golden) {
  dp::NormalizerStats stats = PushTStats();
  if (golden == GoldenCase::kNotebook) {
    stats.cameras = {{Normalization::kIdentity, {}, {}}};
  } else {
    stats.cameras = {{Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  }
  return stats;
}

std::shared_ptr<const dp::Checkpoint> GoldenCheckpoint(GoldenCase golden) {
  const bool notebook = golden == GoldenCase::kNotebook;
  return Build(GoldenConfig(golden), GoldenStats(golden),
               notebook ? dp::NotebookNames(false) : dp::LeRobotNames());
}

std::shared_ptr<const dp::Checkpoint> CompactCheckpoint() {
  dp::PolicyConfig config = PushTConfig();
  config.type = "diffusion_compact";
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.encoder = dp::CompactEncoderConfig();
  config.unet.down_dims = {64, 128, 256};
  return Build(std::move(config), GoldenStats(GoldenCase::kLeRobotCompact), dp::LeRobotNames());
}

std::shared_ptr<const dp::Checkpoint> TinyStateCheckpoint() {
  dp::PolicyConfig config = PushTConfig();
  config.environment_dim = 16;
  config.n_action_steps = 7;
  config.unet.down_dims = {8, 16, 32};
  config.unet.step_embed_dim = 16;
  dp::NormalizerStats stats = PushTStats();
  stats.environment = {Normalization::kMinMax, std::vector<float>(16, 0.0f),
                       std::vector<float>(16, 512.0f)};
  return Build(std::move(config), std::move(stats), dp::LeRobotNames());
}

}  // namespace pusht_test
