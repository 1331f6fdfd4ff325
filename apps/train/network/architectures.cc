#include "apps/train/network/architectures.h"

#include <utility>

#include "base/error.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/dit/dit_model.h"
#include "policy/unet/unet_config.h"
#include "policy/unet/unet_model.h"
#include "tasks/pusht/physics/state.h"
#include "tasks/pusht/pictures/raster_source.h"
#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {
namespace {

mjp::EncoderConfig LeRobotEncoder() {
  mjp::EncoderConfig encoder;
  encoder.kind = mjp::EncoderKind::kResNet18;
  encoder.crop_height = encoder.crop_width = 84;
  return encoder;
}

void CheckChannels(const std::vector<int>& channels, int multiple, const std::string& what) {
  for (const int count : channels) {
    if (count <= 0 || count % multiple != 0) {
      throw mjp::Error(mjp::ExitCode::kUsage, what + ": " + std::to_string(count) +
                                                  " channels are not a multiple of " +
                                                  std::to_string(multiple));
    }
  }
}

mjp::PredictionType PredictionOf(const std::string& name) {
  if (name == "epsilon") return mjp::PredictionType::kEpsilon;
  if (name == "sample") return mjp::PredictionType::kSample;
  if (name == "v") return mjp::PredictionType::kVPrediction;
  throw mjp::Error(mjp::ExitCode::kUsage,
                   "--prediction " + name + " is not known; choose epsilon, sample or v");
}

// Options that are not of the network that was asked for.
void CheckNetwork(const ArchitectureOptions& options) {
  const bool lerobot = options.name == "lerobot";
  for (const auto& [option, given] :
       {std::pair{"--stage-channels", !options.stage_channels.empty()},
        std::pair{"--stem-channels", options.stem_channels > 0}}) {
    if (lerobot && given)
      throw mjp::Error(mjp::ExitCode::kUsage,
                       std::string(option) +
                           ": --network lerobot has ResNet-18, whose channels config.json cannot "
                           "say; leave it out, or take --network compact");
  }
  if (options.IsDit() && !options.unet_channels.empty())
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--unet-channels: --network dit has no U-Net; give --dit-hidden in its place");
  if (!options.IsDit() && options.IsFlow())
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--objective flow: is of --network dit; the U-Net is trained by diffusion");
  if (options.IsDit() && options.hidden % (2 * options.heads) != 0)
    throw mjp::Error(mjp::ExitCode::kUsage, "--dit-heads: twice as many must divide --dit-hidden");
}

// The transformer with the features, times, encoder and noise schedule of `config`.
mjp::DitConfig TransformerOf(const ArchitectureOptions& options,
                             const mjp::UnetPolicyConfig& config) {
  mjp::DitConfig dit;
  static_cast<mjp::PolicyConfig&>(dit) = config;
  dit.objective =
      options.IsFlow() ? mjp::DitObjective::kFlowMatching : mjp::DitObjective::kDiffusion;
  dit.scheduler = config.scheduler;
  dit.encoder = config.encoder;
  dit.hidden = options.hidden, dit.layers = options.layers, dit.heads = options.heads;
  return dit;
}

}  // namespace

void Apply(const Execution& execution, mjp::PolicyConfig& config, mjp::SchedulerConfig& scheduler) {
  if (execution.temperature) scheduler.temperature = static_cast<float>(*execution.temperature);
  if (execution.replan_every > config.n_action_steps) {
    throw mjp::Error(mjp::ExitCode::kUsage, "--replan-every: a chunk is executed for " +
                                                std::to_string(config.n_action_steps) +
                                                " control steps at most");
  }
  if (execution.replan_every > 0) config.replan_every = execution.replan_every;
  if (execution.replan_beyond) config.replan_beyond = *execution.replan_beyond;
  if (config.DecidesTooRarely()) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--replan-beyond: needs a decision before a chunk has ended: give a "
                     "--replan-every below its " +
                         std::to_string(config.n_action_steps) + " actions");
  }
}

std::shared_ptr<mjp::NetworkModel> Architecture::NewModel() const {
  if (dit) {
    auto model = std::make_shared<mjp::DitModel>();
    model->config = *dit;
    model->looks = looks;
    return model;
  }
  auto model = std::make_shared<mjp::UnetModel>();
  model->config = config;
  model->looks = looks;
  return model;
}

Architecture MakeNetwork(const ArchitectureOptions& options) {
  Architecture policy;
  mjp::UnetPolicyConfig& config = policy.config;
  config.cameras = {{"observation.image", 3, mjp::kPictureSize, mjp::kPictureSize}};
  policy.looks = {{config.cameras[0].name, RasterLook()}};
  config.state_dim = 2;
  config.action_dim = 2;
  if (options.name == "compact") {
    config.type = "diffusion_compact";
    config.encoder = mjp::CompactEncoderConfig();
    config.unet.down_dims = {64, 128, 256};
  } else if (options.name == "lerobot") {
    config.type = "diffusion";
    config.encoder = LeRobotEncoder();
  } else if (options.IsDit()) {
    config.type = mjp::kCompactDit;
    config.encoder = mjp::CompactEncoderConfig();
  } else {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--network " + options.name + " is not known; choose compact, lerobot or dit");
  }
  CheckNetwork(options);
  if (options.unet_channels.size() > mjp::kMostLevels) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--unet-channels: at most " + std::to_string(mjp::kMostLevels) + " levels");
  }
  if (!options.unet_channels.empty()) config.unet.down_dims = options.unet_channels;
  if (!options.stage_channels.empty()) {
    if (options.stage_channels.size() > config.encoder.stage_strides.size()) {
      throw mjp::Error(mjp::ExitCode::kUsage,
                       "--stage-channels: at most " +
                           std::to_string(config.encoder.stage_strides.size()) + " stages");
    }
    config.encoder.stage_channels = options.stage_channels;
    config.encoder.stage_strides.resize(options.stage_channels.size());
  }
  config.scheduler.prediction = PredictionOf(options.prediction);
  if (options.stem_channels > 0) config.encoder.stem_channels = options.stem_channels;
  CheckChannels(config.unet.down_dims, config.unet.groups, "--unet-channels");
  CheckChannels(config.encoder.stage_channels, config.encoder.channels_per_group,
                "--stage-channels");
  CheckChannels({config.encoder.stem_channels}, 8, "--stem-channels");
  const mjp::FeatureStats pixels{
      mjp::Normalization::kMinMax, {0, 0}, {float{kWorldSize}, float{kWorldSize}}};
  policy.stats.state = policy.stats.action = pixels;
  policy.stats.cameras = {{mjp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  return policy;
}

Architecture MakeArchitecture(const ArchitectureOptions& options) {
  Architecture policy = MakeNetwork(options);
  mjp::UnetPolicyConfig& config = policy.config;
  if (options.action_steps > 0) config.n_action_steps = options.action_steps;
  if (config.n_action_steps > config.horizon - config.FirstAction()) {
    throw mjp::Error(mjp::ExitCode::kUsage, "--action-steps: a chunk has fewer");
  }
  Apply(options.execution, config, config.scheduler);
  if (options.IsDit()) {
    policy.dit = TransformerOf(options, config);
  } else if (config.horizon % mjp::HorizonMultiple(config.unet) != 0) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--unet-channels: " + std::to_string(config.unet.down_dims.size()) +
                         " levels need a chunk of a multiple of " +
                         std::to_string(mjp::HorizonMultiple(config.unet)) +
                         " actions, and one has " + std::to_string(config.horizon) +
                         "; give fewer");
  }
  CheckLoads(policy);
  return policy;
}

void CheckLoads(const Architecture& policy) {
  mjp::Checkpoint checkpoint;
  checkpoint.config = policy.policy();
  checkpoint.stats = policy.stats;
  checkpoint.network = policy.NewModel();
  mjp::CheckReadsBack(checkpoint);
}

}  // namespace mjp::app
