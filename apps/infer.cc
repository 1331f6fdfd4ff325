#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <string_view>

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

using Shape = std::vector<int64_t>;

// A tensor that is read: (front..., N, rest...). Of one environment the N may be left out, and of
// one camera that dimension.
struct Expected {
  const char* name;
  Shape front, rest;
  bool needed = false;  // as long as in/global_cond is not there
};

std::vector<Expected> ExpectedInputs(const mjp::PolicyConfig& config) {
  const int64_t steps = config.n_obs_steps, horizon = config.horizon, actions = config.action_dim;
  std::vector<Expected> expected = {
      {"in/global_cond", {}, {config.CondDim()}},
      {"in/x_T", {}, {horizon, actions}},
      {"in/noise_by_t", {config.scheduler.train_steps}, {horizon, actions}}};
  if (!config.cameras.empty()) {
    const mjp::CameraFeature& camera = config.cameras[0];  // all have one size
    expected.push_back(
        {"in/frames_u8",
         {},
         {steps, static_cast<int64_t>(config.cameras.size()), camera.height, camera.width, 3},
         true});
  }
  if (config.state_dim > 0) {
    expected.push_back({"in/agent_pos", {}, {steps, config.state_dim}, true});
  }
  if (config.environment_dim > 0) {
    expected.push_back({"in/env_state", {}, {steps, config.environment_dim}, true});
  }
  return expected;
}

std::string ShapeText(const Shape& shape, const std::string& before = "") {
  std::string text = before;
  for (const int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + text + ")";
}

std::string ShapeText(const Expected& expected) {
  std::string front;
  for (const int64_t extent : expected.front) front += std::to_string(extent) + ", ";
  return ShapeText(expected.rest, front + "N");
}

// Environments that `shape` has room for; 0 if it is not one of the expected.
int CountOf(const Shape& shape, const Expected& expected) {
  const auto matches = [&](const Shape& rest) {
    Shape one = expected.front;
    one.insert(one.end(), rest.begin(), rest.end());
    if (shape == one) return 1;
    if (shape.size() != one.size() + 1) return 0;
    const int64_t count = shape[expected.front.size()];
    one.insert(one.begin() + static_cast<ptrdiff_t>(expected.front.size()), count);
    return shape == one && count <= std::numeric_limits<int>::max() ? static_cast<int>(count) : 0;
  };
  int count = matches(expected.rest);
  if (count == 0 && expected.rest.size() == 5 && expected.rest[1] == 1) {
    Shape without_camera = expected.rest;
    without_camera.erase(without_camera.begin() + 1);
    count = matches(without_camera);
  }
  return count;
}

std::string Joined(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

// Says what in the file is not read, and refuses what was perhaps meant to be.
void CheckNames(const mjp::SafetensorsFile& file, const std::vector<Expected>& expected) {
  static const std::set<std::string> kKnown = {"in/frames_u8", "in/agent_pos",  "in/env_state",
                                               "in/x_T",       "in/noise_by_t", "in/global_cond"};
  const bool cond = file.Find("in/global_cond") != nullptr;
  std::vector<std::string> unknown, beside, unused;
  for (const mjp::TensorEntry& tensor : file.tensors()) {
    const auto found = std::ranges::find(expected, tensor.name, &Expected::name);
    if (!kKnown.contains(tensor.name)) {
      (tensor.name.starts_with("in/") ? unknown : beside).push_back(tensor.name);
    } else if (found == expected.end() || (found->needed && cond)) {
      unused.push_back(tensor.name);
    }
  }
  if (!unknown.empty()) {
    throw mjp::BadInput(
        file.origin() + ": has " + Joined(unknown) + ", which nothing here reads; " +
        "correct the name or remove it; known are " + Joined({kKnown.begin(), kKnown.end()}));
  }
  for (const Expected& input : expected) {
    if (!input.needed || cond || file.Find(input.name)) continue;
    throw mjp::BadInput(file.origin() + ": lacks " + input.name + " of shape " + ShapeText(input) +
                        ", which this policy looks at" +
                        (beside.empty() ? "" : "; the file has " + Joined(beside)));
  }
  if (!beside.empty()) std::fprintf(stderr, "not read: %s\n", Joined(beside).c_str());
  if (!unused.empty()) {
    std::fprintf(stderr, "not read: %s, which the policy %s\n", Joined(unused).c_str(),
                 cond ? "does not need beside in/global_cond" : "does not look at");
  }
}

// Environments in the file; every tensor that is read must have the shape and count of the others.
int CountEnvironments(const mjp::SafetensorsFile& file, const std::vector<Expected>& expected) {
  const bool cond = file.Find("in/global_cond") != nullptr;
  int count = 0;
  const char* first = nullptr;
  for (const Expected& input : expected) {
    const mjp::TensorEntry* entry = file.Find(input.name);
    if (entry == nullptr || (input.needed && cond)) continue;
    const int here = CountOf(entry->shape, input);
    if (here < 1) {
      throw mjp::BadInput(file.origin() + ": " + input.name + " has shape " +
                          ShapeText(entry->shape) + ", expected " + ShapeText(input) +
                          " with N environments");
    }
    if (first && here != count) {
      throw mjp::BadInput(file.origin() + ": " + input.name + " is of " + std::to_string(here) +
                          " environments, " + first + " of " + std::to_string(count));
    }
    first = input.name;
    count = here;
  }
  return count;
}

Inputs ReadInputs(const std::string& path, const mjp::PolicyConfig& config, uint64_t seed) {
  const std::vector<Expected> expected = ExpectedInputs(config);
  Inputs inputs;
  // names and shapes stand in the header, so a foreign file is refused before its data is read
  const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(
      path, mjp::SafetensorsFile::kMaxFile, [&](const mjp::SafetensorsFile& header) {
        CheckNames(header, expected);
        inputs.count = CountEnvironments(header, expected);
      });
  const bool cond = file.Find("in/global_cond") != nullptr;
  const auto floats = [&](const char* name) {
    const auto found = std::ranges::find(expected, std::string_view(name), &Expected::name);
    const bool read = found != expected.end() && !(found->needed && cond) && file.Find(name);
    return read ? file.Floats(name).data : std::vector<float>();
  };
  if (!config.cameras.empty() && !cond) inputs.frames = file.Bytes("in/frames_u8");
  inputs.state = floats("in/agent_pos");
  inputs.environment = floats("in/env_state");
  inputs.x_start = floats("in/x_T");
  inputs.noise_by_t = floats("in/noise_by_t");
  inputs.global_cond = floats("in/global_cond");
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
