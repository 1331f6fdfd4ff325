#include <algorithm>
#include <cstdio>
#include <memory>

#include "apps/commands.h"
#include "apps/policy_options.h"
#include "base/error.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/safetensors_writer.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::string checkpoint, in, out;
  uint64_t seed = 0;
  mjp::PolicyOptions policy;
};

// The tensors of the input file, kept as long as a PolicyInput points at them.
struct Inputs {
  std::vector<uint8_t> frames;
  std::vector<float> state, environment, x_start, noise_by_t, global_cond;
  std::vector<mjp::NoiseKey> keys;
  int count = 0;
};

std::vector<float> FloatsIfPresent(const mjp::SafetensorsFile& file, const char* name) {
  return file.Find(name) != nullptr ? file.Floats(name).data : std::vector<float>();
}

// Environments in the file: what the given tensors hold, which must agree.
int CountEnvironments(const mjp::SafetensorsFile& file, const Inputs& inputs,
                      const mjp::PolicyConfig& config) {
  int count = 0;
  const auto agree = [&](const char* name, size_t size, size_t each) {
    if (size == 0) return;
    const int here = each > 0 && size % each == 0 ? static_cast<int>(size / each) : 0;
    if (here == 0 || (count != 0 && here != count)) {
      throw mjp::BadInput(file.origin() + ": " + name + " has " + std::to_string(size) +
                          " elements; expected a multiple of " + std::to_string(each) +
                          " for the same number of environments as the other tensors");
    }
    count = here;
  };
  const size_t steps = config.n_obs_steps;
  size_t picture = 0;
  for (const mjp::CameraFeature& c : config.cameras) picture += size_t{3} * c.height * c.width;
  const size_t chunk = static_cast<size_t>(config.horizon) * config.action_dim;
  agree("in/global_cond", inputs.global_cond.size(), config.CondDim());
  agree("in/frames_u8", inputs.frames.size(), steps * picture);
  agree("in/agent_pos", inputs.state.size(), steps * config.state_dim);
  agree("in/env_state", inputs.environment.size(), steps * config.environment_dim);
  agree("in/x_T", inputs.x_start.size(), chunk);
  agree("in/noise_by_t", inputs.noise_by_t.size(), chunk * config.scheduler.train_steps);
  if (count == 0)
    throw mjp::BadInput(file.origin() + ": holds no observations (in/frames_u8, ...)");
  return count;
}

// Clears what the policy does not look at, and says so.
template <class T>
void DropUnused(const char* name, int size, std::vector<T>& values) {
  if (size > 0 || values.empty()) return;
  std::fprintf(stderr, "%s is not read: the policy has no such input\n", name);
  values.clear();
}

// Pictures (..., height, width, 3); the other order of the same numbers would run, and be noise.
std::vector<uint8_t> ReadFrames(const mjp::SafetensorsFile& file) {
  constexpr const char* kName = "in/frames_u8";
  const mjp::TensorEntry* entry = file.Find(kName);
  if (entry == nullptr) return {};
  if (entry->shape.empty() || entry->shape.back() != 3) {
    throw mjp::BadInput(file.origin() + ": " + kName +
                        " must have 3 as its last dimension: height, width, RGB of each picture");
  }
  return file.Bytes(kName);
}

Inputs ReadInputs(const std::string& path, const mjp::PolicyConfig& config, uint64_t seed) {
  const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(path);
  Inputs inputs;
  inputs.frames = ReadFrames(file);
  inputs.state = FloatsIfPresent(file, "in/agent_pos");
  inputs.environment = FloatsIfPresent(file, "in/env_state");
  inputs.x_start = FloatsIfPresent(file, "in/x_T");
  inputs.noise_by_t = FloatsIfPresent(file, "in/noise_by_t");
  inputs.global_cond = FloatsIfPresent(file, "in/global_cond");
  DropUnused("in/frames_u8", static_cast<int>(config.cameras.size()), inputs.frames);
  DropUnused("in/agent_pos", config.state_dim, inputs.state);
  DropUnused("in/env_state", config.environment_dim, inputs.environment);
  inputs.count = CountEnvironments(file, inputs, config);
  for (int i = 0; i < inputs.count; ++i) inputs.keys.push_back({seed + i, 0});
  return inputs;
}

void WriteOutputs(const std::string& path, const mjp::PolicyConfig& config, int count,
                  const mjp::PolicyOutput& output) {
  const mjp::PolicyTrace& trace = *output.trace;
  const auto steps = static_cast<int64_t>(trace.timesteps.size());
  const int64_t horizon = config.horizon, actions = config.action_dim, n = count;
  std::vector<float> chunk;
  for (int64_t i = 0; i < n; ++i) {
    const auto begin = output.actions.begin() + (i * horizon + config.FirstAction()) * actions;
    chunk.insert(chunk.end(), begin, begin + config.n_action_steps * actions);
  }
  mjp::SafetensorsWriter writer;
  writer.AddFloats("out/global_cond", {n, config.CondDim()}, trace.global_cond);
  writer.AddIntegers("out/timesteps", {steps},
                     std::vector<int64_t>(trace.timesteps.begin(), trace.timesteps.end()));
  writer.AddFloats("out/eps_steps", {steps, n, horizon, actions}, trace.eps_steps);
  writer.AddFloats("out/x_steps", {steps, n, horizon, actions}, trace.x_steps);
  writer.AddFloats("out/action_full", {n, horizon, actions}, output.actions);
  writer.AddFloats("out/action_chunk", {n, config.n_action_steps, actions}, chunk);
  writer.Write(path);
}

int Run(Arguments& arguments, const CLI::App& command) {
  const auto checkpoint = mjp::LoadCheckpoint(arguments.checkpoint);
  const mjp::PolicyConfig& config = checkpoint->config;
  CompletePolicyOptions(command, config, arguments.policy);
  const Inputs inputs = ReadInputs(arguments.in, config, arguments.seed);
  arguments.policy.batch = inputs.count;
  const auto policy = mjp::Policy::Create(checkpoint, arguments.policy);
  mjp::PolicyInput input;
  input.count = inputs.count;
  input.frames = inputs.frames;
  input.state = inputs.state;
  input.environment = inputs.environment;
  input.keys = inputs.keys;
  input.x_start = inputs.x_start;
  input.noise_by_t = inputs.noise_by_t;
  input.global_cond = inputs.global_cond;
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  policy->Infer(input, output);
  WriteOutputs(arguments.out, config, inputs.count, output);
  std::printf("%s\n%d environments, %zu denoising steps -> %s\n", policy->Description().c_str(),
              inputs.count, trace.timesteps.size(), arguments.out.c_str());
  return 0;
}

}  // namespace

Action AddInfer(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("infer", "Run a checkpoint on stored observations");
  command->add_option("--checkpoint", arguments->checkpoint, "Checkpoint directory")->required();
  command->add_option("--input,--in", arguments->in, "Observations (.safetensors)")->required();
  command->add_option("--out", arguments->out, "Actions and intermediates (.safetensors)")
      ->required();
  command->add_option("--seed", arguments->seed, "Seed of the noise that the input does not give");
  AddPolicyOptions(*command, arguments->policy);
  return [arguments, command] { return Run(*arguments, *command); };
}

}  // namespace mjp::app
