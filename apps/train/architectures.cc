#include "apps/train/architectures.h"

#include "kernels/error.h"
#include "kernels/rasterise.h"
#include "task/state.h"

namespace pusht {
namespace {

dp::EncoderConfig LeRobotEncoder() {
  dp::EncoderConfig encoder;
  encoder.kind = dp::EncoderKind::kResNet18;
  encoder.crop_height = encoder.crop_width = 84;
  return encoder;
}

void CheckChannels(const std::vector<int>& channels, int multiple, const std::string& what) {
  for (const int count : channels) {
    if (count <= 0 || count % multiple != 0) {
      throw dp::Error(dp::ExitCode::kUsage, what + ": " + std::to_string(count) +
                                                " channels are not a multiple of " +
                                                std::to_string(multiple));
    }
  }
}

dp::PredictionType PredictionOf(const std::string& name) {
  if (name == "epsilon") return dp::PredictionType::kEpsilon;
  if (name == "sample") return dp::PredictionType::kSample;
  if (name == "v") return dp::PredictionType::kVPrediction;
  throw dp::Error(dp::ExitCode::kUsage,
                  "--prediction " + name + " is not known; choose epsilon, sample or v");
}

}  // namespace

dp::Checkpoint MakeArchitecture(const ArchitectureOptions& options) {
  dp::Checkpoint policy;
  dp::PolicyConfig& config = policy.config;
  config.cameras = {{"observation.image", 3, dp::kPictureSize, dp::kPictureSize}};
  config.state_dim = 2;
  config.action_dim = 2;
  if (options.name == "compact") {
    config.type = "diffusion_compact";
    config.encoder = dp::CompactEncoderConfig();
    config.unet.down_dims = {64, 128, 256};
  } else if (options.name == "lerobot") {
    config.type = "diffusion";
    config.encoder = LeRobotEncoder();
  } else {
    throw dp::Error(dp::ExitCode::kUsage,
                    "--architecture " + options.name + " is not known; choose compact or lerobot");
  }
  if (!options.unet_channels.empty()) config.unet.down_dims = options.unet_channels;
  if (!options.stage_channels.empty()) {
    if (options.stage_channels.size() > config.encoder.stage_strides.size()) {
      throw dp::Error(dp::ExitCode::kUsage,
                      "--stage-channels: at most " +
                          std::to_string(config.encoder.stage_strides.size()) + " stages");
    }
    config.encoder.stage_channels = options.stage_channels;
    config.encoder.stage_strides.resize(options.stage_channels.size());
  }
  if (options.action_steps > 0) config.n_action_steps = options.action_steps;
  if (config.n_action_steps > config.horizon - config.FirstAction()) {
    throw dp::Error(dp::ExitCode::kUsage, "--action-steps: a chunk has fewer");
  }
  config.scheduler.prediction = PredictionOf(options.prediction);
  if (options.stem_channels > 0) config.encoder.stem_channels = options.stem_channels;
  CheckChannels(config.unet.down_dims, config.unet.groups, "--unet-channels");
  CheckChannels(config.encoder.stage_channels, config.encoder.channels_per_group,
                "--stage-channels");
  CheckChannels({config.encoder.stem_channels}, 8, "--stem-channels");

  const dp::FeatureStats pixels{
      dp::Normalization::kMinMax, {0, 0}, {float{kWorldSize}, float{kWorldSize}}};
  policy.stats.state = policy.stats.action = pixels;
  policy.stats.cameras = {{dp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  return policy;
}

}  // namespace pusht
