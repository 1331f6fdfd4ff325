#include "apps/train/imitation/policy.h"

#include <memory>
#include <string>

#include "base/error.h"
#include "policy/unet/network_builder.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {
namespace {

Error Usage(const std::string& text) { return Error(ExitCode::kUsage, text); }

void SetPictures(const ImitationShape& shape, const RecordedFrames& frames,
                 UnetPolicyConfig& config) {
  EncoderConfig& encoder = config.encoder;
  config.cameras = frames.cameras;
  encoder.resize_height = encoder.resize_width = encoder.crop_height = encoder.crop_width = 0;
  if (frames.cameras.empty()) {
    encoder = EncoderConfig();
    config.type = "diffusion";
    if (config.environment_dim > 0) return;
    throw BadInput(
        "a policy without pictures needs observation.environment_state beside the state, as "
        "LeRobot's does");
  }
  if (config.type != "diffusion" && (shape.resize_height > 0 || shape.crop_height > 0)) {
    throw Usage("--resize and --crop are steps of LeRobot's policy: give --architecture lerobot");
  }
  encoder.resize_height = shape.resize_height;
  encoder.resize_width = shape.resize_width;
  encoder.crop_height = shape.crop_height;
  encoder.crop_width = shape.crop_width;
  const CameraFeature& camera = frames.cameras[0];
  const bool resized = shape.resize_height > 0;
  if (shape.crop_height > (resized ? shape.resize_height : camera.height) ||
      shape.crop_width > (resized ? shape.resize_width : camera.width)) {
    throw Usage("--crop is larger than the pictures");
  }
}

// Initial weights, with positions of a map that need not be square.
class WithGrid : public TensorSource {
 public:
  WithGrid(uint64_t seed, const UnetPolicyConfig& config)
      : weights_(MakeInitialWeights(seed)),
        map_(config.cameras.empty() ? MapSize()
                                    : FeatureMapSize(config.encoder, config.cameras[0])) {}

  Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    if (!name.ends_with(".pos_grid")) return weights_->Take(name, shape);
    Tensor grid{shape, {}};
    const auto at = [](int i, int count) {
      return count > 1 ? 2.0f * static_cast<float>(i) / static_cast<float>(count - 1) - 1 : -1.0f;
    };
    for (int y = 0; y < map_.height; ++y) {
      for (int x = 0; x < map_.width; ++x) {
        grid.data.push_back(at(x, map_.width));
        grid.data.push_back(at(y, map_.height));
      }
    }
    return grid;
  }
  void Discard(const std::string& name) override { weights_->Discard(name); }

 private:
  std::unique_ptr<TensorSource> weights_;
  MapSize map_;
};

}  // namespace

Architecture ImitationPolicy(const ArchitectureOptions& architecture, const ImitationShape& shape,
                             const RecordedFrames& frames) {
  if (architecture.IsDit())
    throw Usage("--network dit: is trained on Push-T; leave out --dataset or --expert");
  ArchitectureOptions base = architecture;
  base.action_steps = 0;
  base.execution = {};
  Architecture policy = MakeArchitecture(base);
  UnetPolicyConfig& config = policy.config;
  config.state_dim = static_cast<int>(frames.state.size(1));
  config.environment_dim = static_cast<int>(frames.environment.size(1));
  config.action_dim = static_cast<int>(frames.action.size(1));
  SetPictures(shape, frames, config);
  const int levels = static_cast<int>(config.unet.down_dims.size());
  config.n_obs_steps = shape.observation_steps;
  config.horizon = shape.horizon;
  if (config.horizon % (1 << (levels - 1)) != 0) {
    throw Usage("--horizon must be a multiple of " + std::to_string(1 << (levels - 1)) +
                ", for a U-Net of " + std::to_string(levels) + " levels");
  }
  config.n_action_steps =
      architecture.action_steps > 0 ? architecture.action_steps : config.horizon / 2;
  const int executable = config.horizon - config.FirstAction();
  if (executable < 1) {
    throw Usage("--observation-steps " + std::to_string(config.n_obs_steps) + ": a chunk of " +
                std::to_string(config.horizon) +
                " actions begins with the first of them; give a longer --horizon");
  }
  if (config.n_action_steps > executable) {
    throw Usage("--action-steps: a chunk has " + std::to_string(executable));
  }
  Apply(architecture.execution, config, config.scheduler);
  policy.stats = frames.Statistics();
  policy.looks = frames.looks;
  return policy;
}

NamedTensors InitialImitationWeights(const Architecture& policy, uint64_t seed) {
  WithGrid source(seed, policy.config);
  UnetModel initial;
  initial.config = policy.config;
  BuildNetwork(LeRobotNames(), source, initial);
  NamedTensors tensors;
  VisitTensors(LeRobotNames(), initial, [&](const std::string& name, const Tensor& tensor) {
    tensors.push_back({name, tensor});
  });
  return tensors;
}

}  // namespace mjp::app
