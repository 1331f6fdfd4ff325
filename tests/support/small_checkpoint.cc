#include "tests/support/small_checkpoint.h"

#include "policy/checkpoint_writer.h"
#include "policy/random_checkpoint.h"

namespace pusht_test {

void WriteSmallCheckpoint(const std::string& directory) {
  dp::PolicyConfig config;
  config.type = "diffusion_compact";
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.state_dim = config.action_dim = 2;
  config.encoder = dp::CompactEncoderConfig();
  config.encoder.stem_channels = 8;
  config.encoder.stem_stride = 4;
  config.encoder.stage_channels = {16};
  config.encoder.stage_strides = {4};
  config.encoder.blocks_per_stage = 1;
  config.encoder.pool_channels = 8;
  config.encoder.feature_dim = 16;
  config.unet.down_dims = {16, 32};
  config.unet.step_embed_dim = 16;
  dp::NormalizerStats stats;
  stats.cameras = {{dp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  stats.state = stats.action = {dp::Normalization::kMinMax, {0, 0}, {512, 512}};
  dp::WriteCheckpoint(directory, *dp::RandomCheckpoint(config, stats, 7), dp::WeightFormat::kF16);
}

}  // namespace pusht_test
