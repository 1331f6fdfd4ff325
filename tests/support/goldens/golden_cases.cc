#include "tests/support/goldens/golden_cases.h"

#include <utility>

#include "policy/unet/unet_model.h"
#include "tests/support/goldens/formula_weights.h"

namespace mjp_test {
namespace {

using mjp::Normalization;

mjp::UnetPolicyConfig PushTConfig() {
  mjp::UnetPolicyConfig config;
  config.type = "diffusion";
  config.state_dim = 2;
  config.action_dim = 2;
  return config;
}

mjp::NormalizerStats PushTStats() {
  mjp::NormalizerStats stats;
  stats.state = {Normalization::kMinMax, {13.456424f, 32.938293f}, {496.14618f, 510.9579f}};
  stats.action = {Normalization::kMinMax, {12.0f, 25.0f}, {511.0f, 511.0f}};
  return stats;
}

std::shared_ptr<const mjp::Checkpoint> Build(mjp::UnetPolicyConfig config,
                                             mjp::NormalizerStats stats) {
  auto network = std::make_shared<mjp::UnetModel>();
  network->config = std::move(config);
  auto checkpoint = std::make_shared<mjp::Checkpoint>();
  checkpoint->config = network->config;
  checkpoint->stats = std::move(stats);
  checkpoint->directory = "(formula weights)";
  FormulaWeights weights;
  checkpoint->parameter_count = network->TakeTensors(weights);
  checkpoint->network = std::move(network);
  return checkpoint;
}

}  // namespace

mjp::UnetPolicyConfig GoldenConfig(GoldenCase golden) {
  mjp::UnetPolicyConfig config = PushTConfig();
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.encoder.kind = mjp::EncoderKind::kResNet18;
  switch (golden) {
    case GoldenCase::kLeRobotFull:
    case GoldenCase::kLeRobotCompact:
      config.encoder.crop_height = config.encoder.crop_width = 84;
      if (golden == GoldenCase::kLeRobotCompact) config.unet.down_dims = {128, 256, 512};
      break;
    case GoldenCase::kNotebook:
      config.type = "diffusion_notebook";
      config.encoder.pool = mjp::PoolKind::kAverage;
      config.encoder.feature_dim = 512;
      config.encoder.feature_relu = false;
      config.cond_order = mjp::CondOrder::kImageState;
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

mjp::NormalizerStats GoldenStats(GoldenCase golden) {
  mjp::NormalizerStats stats = PushTStats();
  if (golden == GoldenCase::kNotebook) {
    stats.cameras = {{Normalization::kIdentity, {}, {}}};
  } else {
    stats.cameras = {{Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  }
  return stats;
}

std::shared_ptr<const mjp::Checkpoint> GoldenCheckpoint(GoldenCase golden) {
  return Build(GoldenConfig(golden), GoldenStats(golden));
}

std::shared_ptr<const mjp::Checkpoint> CompactCheckpoint() {
  mjp::UnetPolicyConfig config = PushTConfig();
  config.type = "diffusion_compact";
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.encoder = mjp::CompactEncoderConfig();
  config.unet.down_dims = {64, 128, 256};
  return Build(std::move(config), GoldenStats(GoldenCase::kLeRobotCompact));
}

std::shared_ptr<const mjp::Checkpoint> TinyStateCheckpoint() {
  mjp::UnetPolicyConfig config = PushTConfig();
  config.environment_dim = 16;
  config.n_action_steps = 7;
  config.unet.down_dims = {8, 16, 32};
  config.unet.step_embed_dim = 16;
  mjp::NormalizerStats stats = PushTStats();
  stats.environment = {Normalization::kMinMax, std::vector<float>(16, 0.0f),
                       std::vector<float>(16, 512.0f)};
  return Build(std::move(config), std::move(stats));
}

}  // namespace mjp_test
