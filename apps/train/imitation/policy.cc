#include "apps/train/imitation/policy.h"

#include <algorithm>
#include <memory>
#include <string>

#include "base/error.h"
#include "policy/unet/network_builder.h"
#include "policy/unet/position_grid.h"
#include "policy/unet/unet_config.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {
namespace {

Error Usage(const std::string& text) { return Error(ExitCode::kUsage, text); }

// "320x240", as pictures are called.
std::string SizeText(int height, int width) {
  return std::to_string(width) + "x" + std::to_string(height);
}

// After a resize config.json says a crop by the one share that it leaves of both sides.
void CheckCrop(const ImitationShape& shape, const EncoderConfig& encoder) {
  if (CropRatio(encoder)) return;
  const double share = std::min((shape.crop_height + 0.5) / shape.resize_height,
                                (shape.crop_width + 0.5) / shape.resize_width);
  throw Usage(
      "--crop " + SizeText(shape.crop_height, shape.crop_width) +
      ": no crop_ratio gives it of --resize " + SizeText(shape.resize_height, shape.resize_width) +
      "; give " +
      SizeText(CroppedSide(shape.resize_height, share), CroppedSide(shape.resize_width, share)) +
      ", say");
}

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
  CheckCrop(shape, encoder);
}

}  // namespace

Architecture ImitationPolicy(const ArchitectureOptions& architecture, const ImitationShape& shape,
                             const RecordedFrames& frames) {
  if (architecture.IsDit())
    throw Usage("--network dit: is trained on Push-T; leave out --dataset or --expert");
  Architecture policy = MakeNetwork(architecture);
  UnetPolicyConfig& config = policy.config;
  config.state_dim = static_cast<int>(frames.state.size(1));
  config.environment_dim = static_cast<int>(frames.environment.size(1));
  config.action_dim = static_cast<int>(frames.action.size(1));
  SetPictures(shape, frames, config);
  const int multiple = HorizonMultiple(config.unet);
  config.n_obs_steps = shape.observation_steps;
  config.horizon = shape.horizon;
  if (config.horizon % multiple != 0) {
    throw Usage("--horizon must be a multiple of " + std::to_string(multiple) +
                ", for a U-Net of " + std::to_string(config.unet.down_dims.size()) + " levels");
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
  CheckLoads(policy);
  return policy;
}

NamedTensors InitialImitationWeights(const Architecture& policy, uint64_t seed) {
  const std::unique_ptr<TensorSource> weights = MakeInitialWeights(seed);
  WithPositionGrid source(*weights, policy.config);
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
