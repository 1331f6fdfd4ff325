#include "tests/support/goldens/small_checkpoint.h"

#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/random_checkpoint.h"

namespace mjp_test {

void WriteSmallCheckpoint(const std::string& directory) {
  mjp::UnetPolicyConfig config;
  config.type = "diffusion_compact";
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.state_dim = config.action_dim = 2;
  config.encoder = mjp::CompactEncoderConfig();
  config.encoder.stem_channels = 8;
  config.encoder.stem_stride = 4;
  config.encoder.stage_channels = {16};
  config.encoder.stage_strides = {4};
  config.encoder.blocks_per_stage = 1;
  config.encoder.pool_channels = 8;
  config.encoder.feature_dim = 16;
  config.unet.down_dims = {16, 32};
  config.unet.step_embed_dim = 16;
  mjp::NormalizerStats stats;
  stats.cameras = {{mjp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  stats.state = stats.action = {mjp::Normalization::kMinMax, {0, 0}, {512, 512}};
  mjp::WriteCheckpoint(directory, *mjp::RandomCheckpoint(config, stats, 7),
                       mjp::WeightFormat::kF16);
}

}  // namespace mjp_test
