#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <memory>
#include <set>

#include "apps/commands.h"
#include "apps/policy_options.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/network_model.h"
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
  std::vector<std::vector<int>> ids;  // of the instructions
  std::vector<mjp::NoiseKey> keys;
  int count = 0;
};

using Shape = std::vector<int64_t>;
constexpr char kCondition[] = "in/global_cond", kIds[] = "in/ids", kMask[] = "in/mask";

// A tensor that is read: (front..., N, rest...). Of one environment the N may be left out, of one
// camera that dimension, and of one observation step that one.
struct Expected {
  std::string name;
  Shape front, rest;
  bool needed = false;  // as long as in/global_cond is not there
  bool steps = false;   // whether `rest` begins with the observation steps
};

std::string InputName(const std::string& feature) { return "in/" + feature; }

// A feature of numbers has its own name, or the short one that Push-T's stored observations have.
Expected ExpectedVector(const mjp::SafetensorsFile& file, const char* short_name,
                        const std::string& feature, int64_t steps, int dim) {
  const bool by_feature = !file.Find(short_name) && file.Find(InputName(feature));
  return {by_feature ? InputName(feature) : short_name, {}, {steps, dim}, true, true};
}

// The pictures: each camera's, under the feature's name, or all in in/frames_u8.
void AddExpectedPictures(const mjp::SafetensorsFile& file, const mjp::PolicyConfig& config,
                         std::vector<Expected>& expected) {
  const bool by_feature = std::ranges::any_of(
      config.cameras, [&](const auto& camera) { return file.Find(InputName(camera.name)); });
  const int64_t steps = config.n_obs_steps, cameras = static_cast<int64_t>(config.cameras.size());
  for (const mjp::CameraFeature& camera : config.cameras) {
    if (by_feature) {
      expected.push_back(
          {InputName(camera.name), {}, {steps, camera.height, camera.width, 3}, true, true});
    } else {  // all have one size
      expected.push_back(
          {"in/frames_u8", {}, {steps, cameras, camera.height, camera.width, 3}, true, true});
      return;
    }
  }
}

std::vector<Expected> ExpectedInputs(const mjp::SafetensorsFile& file,
                                     const mjp::Checkpoint& checkpoint) {
  const mjp::PolicyConfig& config = checkpoint.config;
  const mjp::SamplerTraits sampler = checkpoint.network->sampler();
  const int64_t steps = config.n_obs_steps, horizon = config.horizon, actions = config.action_dim;
  std::vector<Expected> expected;
  if (checkpoint.network->cond_dim() > 0)
    expected.push_back({kCondition, {}, {checkpoint.network->cond_dim()}});
  if (!sampler.kinds.empty()) expected.push_back({"in/x_T", {}, {horizon, actions}});
  if (sampler.noise_steps > 0)
    expected.push_back({"in/noise_by_t", {sampler.noise_steps}, {horizon, actions}});
  if (const int64_t tokens = checkpoint.network->text_tokens(); tokens > 0) {
    expected.push_back({kIds, {}, {tokens}});
    expected.push_back({kMask, {}, {tokens}});
  }
  AddExpectedPictures(file, config, expected);
  if (config.state_dim > 0) {
    expected.push_back(
        ExpectedVector(file, "in/agent_pos", mjp::kStateFeature, steps, config.state_dim));
  }
  if (config.environment_dim > 0) {
    expected.push_back(ExpectedVector(file, "in/env_state", mjp::kEnvironmentFeature, steps,
                                      config.environment_dim));
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
  Shape rest = expected.rest;
  int count = matches(rest);
  if (count == 0 && rest.size() == 5 && rest[1] == 1) {
    rest.erase(rest.begin() + 1);
    count = matches(rest);
  }
  if (count == 0 && expected.steps && rest[0] == 1) {
    rest.erase(rest.begin());
    count = matches(rest);
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

// Whether the file's conditioning vector stands for the observation.
bool HasCondition(const mjp::SafetensorsFile& file, const std::vector<Expected>& expected) {
  return std::ranges::find(expected, kCondition, &Expected::name) != expected.end() &&
         file.Find(kCondition) != nullptr;
}

// Says what in the file is not read, and refuses what was perhaps meant to be.
void CheckNames(const mjp::SafetensorsFile& file, const std::vector<Expected>& expected) {
  std::set<std::string> known = {
      "in/frames_u8", "in/agent_pos",  "in/env_state", "in/observation.state",
      "in/x_T",       "in/noise_by_t", kCondition};
  for (const Expected& input : expected) known.insert(input.name);
  const bool cond = HasCondition(file, expected);
  std::vector<std::string> unknown, beside, unused;
  for (const mjp::TensorEntry& tensor : file.tensors()) {
    const auto found = std::ranges::find(expected, tensor.name, &Expected::name);
    if (!known.contains(tensor.name)) {
      (tensor.name.starts_with("in/") ? unknown : beside).push_back(tensor.name);
    } else if (found == expected.end() || (found->needed && cond)) {
      unused.push_back(tensor.name);
    }
  }
  if (!unknown.empty()) {
    throw mjp::BadInput(
        file.origin() + ": has " + Joined(unknown) + ", which nothing here reads; " +
        "correct the name or remove it; known are " + Joined({known.begin(), known.end()}));
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
  const bool cond = HasCondition(file, expected);
  int count = 0;
  const std::string* first = nullptr;
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
                          " environments, " + *first + " of " + std::to_string(count));
    }
    first = &input.name;
    count = here;
  }
  return count;
}

// (N, To, cameras, height, width, 3) from each camera's (N, To, height, width, 3).
std::vector<uint8_t> ReadPictures(const mjp::SafetensorsFile& file,
                                  const mjp::PolicyConfig& config) {
  if (file.Find("in/frames_u8")) return file.Bytes("in/frames_u8");
  std::vector<uint8_t> frames;
  const size_t cameras = config.cameras.size();
  for (size_t i = 0; i < cameras; ++i) {
    const std::vector<uint8_t> pictures = file.Bytes(InputName(config.cameras[i].name));
    const size_t size = size_t{3} * config.cameras[i].height * config.cameras[i].width;
    frames.resize(pictures.size() * cameras);
    for (size_t at = 0; at < pictures.size(); at += size) {
      std::copy_n(pictures.begin() + static_cast<ptrdiff_t>(at), size,
                  frames.begin() + static_cast<ptrdiff_t>(at * cameras + i * size));
    }
  }
  return frames;
}

// The tokens of each environment's instruction, those that the mask keeps.
std::vector<std::vector<int>> ReadIds(const mjp::SafetensorsFile& file, int count) {
  if (!file.Find(kIds) && !file.Find(kMask)) return {};
  if (!file.Find(kIds) || !file.Find(kMask)) {
    throw mjp::BadInput(file.origin() + ": has one of " + kIds + " and " + kMask +
                        " without the other; give both, or say --instruction");
  }
  const std::vector<int64_t> all = file.Integers(kIds);
  const std::vector<uint8_t> mask = file.Bytes(kMask);
  std::vector<std::vector<int>> ids(count);
  for (size_t i = 0; i < all.size(); ++i) {
    // what is no token of any vocabulary stays one: the policy refuses it
    const int64_t id = std::clamp<int64_t>(all[i], -1, std::numeric_limits<int>::max());
    if (mask[i] != 0) ids[i * count / all.size()].push_back(static_cast<int>(id));
  }
  return ids;
}

std::vector<float> ReadFinite(const mjp::SafetensorsFile& file, const std::string& name) {
  std::vector<float> values = file.Floats(name).data;
  const auto bad = std::ranges::find_if_not(values, [](float v) { return std::isfinite(v); });
  if (bad == values.end()) return values;
  throw mjp::BadInput(file.origin() + ": " + name + ": element " +
                      std::to_string(bad - values.begin()) +
                      " is not finite; correct it or leave the observation out");
}

Inputs ReadInputs(const std::string& path, const mjp::Checkpoint& checkpoint, uint64_t seed) {
  const mjp::PolicyConfig& config = checkpoint.config;
  std::vector<Expected> expected;
  Inputs inputs;
  // names and shapes stand in the header, so a foreign file is refused before its data is read
  const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(
      path, mjp::SafetensorsFile::kMaxFile, [&](const mjp::SafetensorsFile& header) {
        expected = ExpectedInputs(header, checkpoint);
        CheckNames(header, expected);
        inputs.count = CountEnvironments(header, expected);
      });
  const bool cond = HasCondition(file, expected);
  const auto floats = [&](std::initializer_list<std::string> names) {
    for (const Expected& input : expected) {
      const bool read = std::ranges::find(names, input.name) != names.end() &&
                        !(input.needed && cond) && file.Find(input.name);
      if (read) return ReadFinite(file, input.name);
    }
    return std::vector<float>();
  };
  if (!config.cameras.empty() && !cond) inputs.frames = ReadPictures(file, config);
  inputs.state = floats({"in/agent_pos", InputName(mjp::kStateFeature)});
  inputs.environment = floats({"in/env_state", InputName(mjp::kEnvironmentFeature)});
  inputs.x_start = floats({"in/x_T"});
  inputs.noise_by_t = floats({"in/noise_by_t"});
  inputs.global_cond = floats({kCondition});
  if (checkpoint.network->text_tokens() > 0) inputs.ids = ReadIds(file, inputs.count);
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
  if (!trace.global_cond.empty()) {
    const auto width = static_cast<int64_t>(trace.global_cond.size()) / n;
    writer.AddFloats("out/global_cond", {n, width}, trace.global_cond);
  }
  const auto add_steps = [&](const char* name, const std::vector<float>& values) {
    const auto count = static_cast<int64_t>(values.size()) / (n * horizon * actions);
    if (count > 0) writer.AddFloats(name, {count, n, horizon, actions}, values);
  };
  if (steps > 0) {
    writer.AddIntegers("out/timesteps", {steps},
                       std::vector<int64_t>(trace.timesteps.begin(), trace.timesteps.end()));
  }
  add_steps("out/eps_steps", trace.eps_steps);
  add_steps("out/x_steps", trace.x_steps);
  for (const auto& [name, tensor] : trace.tensors)
    writer.AddFloats("out/" + name, tensor.shape, tensor.data);
  writer.AddFloats("out/action_full", {n, horizon, actions}, output.actions);
  writer.AddFloats("out/action_chunk", {n, config.n_action_steps, actions}, chunk);
  writer.Write(path);
}

int Run(Arguments& arguments) {
  const auto checkpoint = mjp::LoadCheckpoint(arguments.checkpoint);
  const mjp::PolicyConfig& config = checkpoint->config;
  const Inputs inputs = ReadInputs(arguments.in, *checkpoint, arguments.seed);
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
  // what is said on the command line goes before what is stored
  if (arguments.policy.instruction.empty()) input.instruction_ids = inputs.ids;
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  policy->Infer(input, output);
  WriteOutputs(arguments.out, config, inputs.count, output);
  const int passes = output.times.passes;
  const std::string how = passes <= 1 ? "one pass" : std::to_string(passes) + " passes";
  std::printf("%s\n%d environment%s, %s -> %s\n", policy->Description().c_str(), inputs.count,
              inputs.count == 1 ? "" : "s", how.c_str(), arguments.out.c_str());
  return 0;
}

}  // namespace

Action AddInfer(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("infer", "Run a checkpoint on stored observations");
  command->add_option("--checkpoint", arguments->checkpoint, "Checkpoint directory")
      ->required()
      ->type_name("DIR");
  command->add_option("--input,--in", arguments->in, "Observations (.safetensors)")
      ->required()
      ->type_name("FILE");
  command->add_option("--out", arguments->out, "Actions and intermediates (.safetensors)")
      ->required()
      ->type_name("FILE");
  command->add_option("--seed", arguments->seed, "Seed of the noise that the input does not give")
      ->check(WholeSeed());
  AddPolicyOptions(*command, arguments->policy);
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app
