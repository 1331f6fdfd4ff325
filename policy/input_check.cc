#include "policy/input_check.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "policy/checkpoint/network_model.h"
#include "policy/pictures/gpu_picture.h"

namespace mjp {
namespace {

void CheckSize(const char* what, size_t size, size_t expected) {
  if (size == expected) return;
  throw BadInput(std::string("policy input: ") + what + " has " + std::to_string(size) +
                 " elements, expected " + std::to_string(expected));
}

void CheckFinite(const char* what, std::span<const float> values) {
  const auto bad =
      std::find_if_not(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  if (bad == values.end()) return;
  throw BadInput(std::string("policy input: ") + what + "[" + std::to_string(bad - values.begin()) +
                 "] is not finite");
}

void CheckFloats(const char* what, std::span<const float> values, size_t expected) {
  CheckSize(what, values.size(), expected);
  CheckFinite(what, values);
}

void CheckGpuPictures(const PolicyOptions& options, const PolicyInput& input, size_t steps,
                      size_t frame_bytes) {
  CheckSize("frames beside pictures in a GPU's memory", input.frames.size(), 0);
  CheckSize("scenes beside pictures in a GPU's memory", input.scenes.size(), 0);
  if (options.backend != Backend::kCuda) {
    throw BadInput(
        "policy input: pictures in a GPU's memory, but the policy runs on the CPU; give frames");
  }
  CheckSize("pictures in the GPU's memory", input.gpu_pictures.size(), steps);
  for (const std::shared_ptr<const GpuPicture>& picture : input.gpu_pictures)
    CheckSize("a picture in the GPU's memory", picture ? picture->bytes() : 0, frame_bytes);
}

void CheckPictures(const PolicyConfig& config, const PolicyOptions& options,
                   const PolicyInput& input) {
  const size_t steps = static_cast<size_t>(input.count) * config.n_obs_steps;
  size_t frame_bytes = 0;
  for (const CameraFeature& camera : config.cameras)
    frame_bytes += size_t{1} * camera.channels * camera.height * camera.width;
  if (!input.gpu_pictures.empty()) return CheckGpuPictures(options, input, steps, frame_bytes);
  if (input.scenes.empty()) return CheckSize("frames", input.frames.size(), steps * frame_bytes);
  CheckSize("frames beside scenes", input.frames.size(), 0);
  const SceneDrawer* drawer = options.scene_drawer;
  if (drawer == nullptr)
    throw BadInput("policy input: scenes, but the policy has no scene drawer; give frames");
  CheckSize("bytes of scenes", input.scenes.size(), steps * drawer->scene_bytes());
  const CameraFeature& camera = config.cameras.front();
  if (config.cameras.size() != 1 || camera.channels != 3 || camera.width != drawer->width() ||
      camera.height != drawer->height()) {
    throw BadInput("policy input: scenes are drawn for one camera of " +
                   std::to_string(drawer->width()) + "x" + std::to_string(drawer->height()) +
                   "; give frames");
  }
}

// What the sampler draws, or is given.
void CheckNoise(const PolicyConfig& config, const SamplerTraits& traits,
                const PolicyOptions& options, const PolicyInput& input) {
  const size_t n = input.count, elements = n * config.horizon * config.action_dim;
  if (traits.kinds.empty()) {
    CheckSize("x_start of a policy without noise", input.x_start.size(), 0);
    CheckSize("noise_by_t of a policy without noise", input.noise_by_t.size(), 0);
    if (!input.keys.empty()) CheckSize("keys", input.keys.size(), n);
    return;
  }
  if (!input.x_start.empty()) CheckFloats("x_start", input.x_start, elements);
  if (!input.noise_by_t.empty())
    CheckSize("noise_by_t", input.noise_by_t.size(), elements * traits.noise_steps);
  if (input.x_start.empty() || input.noise_by_t.empty() || !input.keys.empty()) {
    const bool noisy = options.sampler.kind == SamplerKind::kDdpm;
    const bool given_start = !noisy && !input.x_start.empty();
    if (!given_start || !input.keys.empty()) CheckSize("keys", input.keys.size(), n);
  }
}

// The known beginning of chunks.
void CheckPrefix(const PolicyConfig& config, const PolicyOptions& options,
                 const PolicyInput& input) {
  if (!options.sampler.prefix && !(input.prefix.empty() && input.prefix_steps.empty())) {
    throw BadInput(
        "policy input: a prefix, but the policy was made without: make it with "
        "SamplerOptions::prefix");
  }
  if (input.prefix.empty() && input.prefix_steps.empty()) return;
  const size_t elements = size_t{1} * config.horizon * config.action_dim;
  CheckSize("prefix", input.prefix.size(), elements * input.count);
  CheckSize("prefix_steps", input.prefix_steps.size(), input.count);
  for (size_t n = 0; n < input.prefix_steps.size(); ++n) {
    const int steps = input.prefix_steps[n];
    if (steps < 0 || steps > config.horizon)
      throw BadInput("policy input: prefix_steps[" + std::to_string(n) + "] is " +
                     std::to_string(steps) + ", allowed are 0 to the horizon, " +
                     std::to_string(config.horizon));
    const bool plan = options.sampler.warm_start > 0 && steps > 0;
    const size_t read = plan ? elements : size_t{1} * steps * config.action_dim;
    CheckFinite("prefix", input.prefix.subspan(n * elements, read));
  }
}

void CheckInstructions(const NetworkModel& network, const PolicyOptions& options,
                       const PolicyInput& input) {
  const size_t ids = input.instruction_ids.size(), given = input.instructions.size() + ids;
  if (network.text_tokens() == 0) {
    return CheckSize("instructions of a policy that reads none", given, 0);
  }
  for (const std::vector<int>& text : input.instruction_ids) {
    if (!text.empty() && text.size() <= static_cast<size_t>(network.text_tokens())) continue;
    throw BadInput("policy input: an instruction has " + std::to_string(text.size()) +
                   " tokens, allowed are 1 to " + std::to_string(network.text_tokens()));
  }
  if (given > 0) return CheckSize("instructions", given, input.count);
  if (options.instruction.empty()) {
    throw BadInput(
        "policy input: this policy reads what to do as a text, and none is given; say "
        "it with --instruction, or the plugin's attribute instruction");
  }
}

}  // namespace

void CheckInput(const Checkpoint& checkpoint, const PolicyOptions& options,
                const PolicyInput& input) {
  const PolicyConfig& config = checkpoint.config;
  if (input.count < 1 || input.count > options.batch)
    throw BadInput("policy input: count " + std::to_string(input.count) +
                   " is not within 1 and the batch, " + std::to_string(options.batch));
  const size_t n = input.count, steps = n * config.n_obs_steps;
  if (input.global_cond.empty()) {
    CheckFloats("state", input.state, steps * config.state_dim);
    CheckFloats("environment", input.environment, steps * config.environment_dim);
    CheckInstructions(*checkpoint.network, options, input);
  } else {
    CheckFloats("global_cond", input.global_cond, n * checkpoint.network->cond_dim());
  }
  const bool pictures =
      !input.frames.empty() || !input.scenes.empty() || !input.gpu_pictures.empty();
  if (!config.cameras.empty() && (input.global_cond.empty() || pictures))
    CheckPictures(config, options, input);
  CheckNoise(config, checkpoint.network->sampler(), options, input);
  CheckPrefix(config, options, input);
}

void CheckActions(std::span<const float> actions) {
  const bool finite =
      std::all_of(actions.begin(), actions.end(), [](float a) { return std::isfinite(a); });
  if (!finite)
    throw BadInput(
        "the policy made an action that is not finite; check the checkpoint's weights "
        "and statistics, or use a precision with more range");
}

}  // namespace mjp
