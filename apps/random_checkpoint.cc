#include "policy/checkpoint/random_checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "apps/commands.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/synthetic/formula_weights.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::string out, network = "compact", config, picture = "96x96";
  std::vector<std::string> cameras{"observation.image"};
  int state = 2, environment = 0, action = 2;
  float range = 1;
  uint64_t seed = 0;
  std::optional<std::string> formula;  // its salt; none: random weights
  bool force = false;
};

// A network without weights, and how each of its features is normalised.
struct Outline {
  mjp::PolicyConfig config;
  mjp::FeatureModes modes;
  std::shared_ptr<mjp::NetworkModel> network;
};

Outline FromConfig(const std::string& path) {
  mjp::ConfigFile file = mjp::ParseConfig(mjp::ReadJson(path), path);
  return {file.policy, file.modes, file.network};
}

// "320x240": width and height.
std::pair<int, int> ParsePicture(const std::string& text) {
  constexpr int kLeast = 16, kMost = 2048;
  const char* end = text.data() + text.size();
  int width = 0, height = 0;
  const auto first = std::from_chars(text.data(), end, width);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == 'x') {
    const auto second = std::from_chars(first.ptr + 1, end, height);
    if (second.ec == std::errc() && second.ptr == end && std::min(width, height) >= kLeast &&
        std::max(width, height) <= kMost) {
      return {width, height};
    }
  }
  throw mjp::Error(mjp::ExitCode::kUsage,
                   "--picture \"" + text + "\": expected WIDTHxHEIGHT, 16 to 2048 pixels each");
}

Outline FromNamed(const Arguments& arguments) {
  const auto network = std::make_shared<mjp::UnetModel>();
  mjp::UnetPolicyConfig& config = network->config = mjp::NamedConfig(arguments.network);
  Outline outline;
  mjp::CameraFeature picture = config.cameras[0];
  std::tie(picture.width, picture.height) = ParsePicture(arguments.picture);
  config.cameras.clear();
  for (const std::string& name : arguments.cameras) {
    config.cameras.push_back(picture);
    config.cameras.back().name = name;
    outline.modes[name] = mjp::Normalization::kMeanStd;
  }
  config.state_dim = arguments.state;
  config.environment_dim = arguments.environment;
  config.action_dim = arguments.action;
  for (const char* feature : {mjp::kStateFeature, mjp::kEnvironmentFeature, mjp::kActionFeature})
    outline.modes[feature] = mjp::Normalization::kMinMax;
  outline.config = config;
  outline.network = network;
  return outline;
}

// `dim` numbers between -range and range, or with that standard deviation.
mjp::FeatureStats Range(mjp::Normalization mode, int dim, float range) {
  const auto size = static_cast<size_t>(dim);
  if (mode == mjp::Normalization::kIdentity) return {};
  const float first = mode == mjp::Normalization::kMeanStd ? 0 : -range;
  return {mode, std::vector<float>(size, first), std::vector<float>(size, range)};
}

mjp::NormalizerStats StatsOf(const Outline& outline, float range) {
  const mjp::PolicyConfig& config = outline.config;
  const auto mode = [&](const std::string& feature) {
    const auto found = outline.modes.find(feature);
    return found == outline.modes.end() ? mjp::Normalization::kIdentity : found->second;
  };
  mjp::NormalizerStats stats;
  for (const mjp::CameraFeature& camera : config.cameras) {
    const mjp::Normalization of_camera = mode(camera.name);
    const bool mean = of_camera == mjp::Normalization::kMeanStd;
    stats.cameras.push_back(of_camera == mjp::Normalization::kIdentity
                                ? mjp::FeatureStats{}
                                : mjp::FeatureStats{of_camera,
                                                    std::vector<float>(3, mean ? 0.5f : 0.0f),
                                                    std::vector<float>(3, mean ? 0.5f : 1.0f)});
  }
  stats.state = Range(mode(mjp::kStateFeature), config.state_dim, range);
  stats.environment = Range(mode(mjp::kEnvironmentFeature), config.environment_dim, range);
  stats.action = Range(mode(mjp::kActionFeature), config.action_dim, range);
  return stats;
}

bool HasBatchNorm(const Outline& outline) {
  const auto* unet = dynamic_cast<const mjp::UnetModel*>(outline.network.get());
  return unet != nullptr && !unet->config.encoder.group_norm;
}

// Writes it, and returns the number of its parameters.
int64_t Write(const Arguments& arguments) {
  Outline outline = arguments.config.empty() ? FromNamed(arguments) : FromConfig(arguments.config);
  const auto source = arguments.formula ? mjp::MakeFormulaSource(*arguments.formula)
                                        : mjp::MakeRandomSource(arguments.seed);
  const std::string name =
      arguments.formula ? "formula " + *arguments.formula : std::to_string(arguments.seed);
  mjp::MadeTensors tensors;
  mjp::MadeTensors* made = HasBatchNorm(outline) ? &tensors : nullptr;
  const auto checkpoint = mjp::MadeCheckpoint(outline.config, StatsOf(outline, arguments.range),
                                              std::move(outline.network), *source, name, made);
  mjp::WriteCheckpoint(arguments.out, *checkpoint,
                       arguments.formula ? mjp::WeightFormat::kF32 : mjp::WeightFormat::kF16, made);
  return checkpoint->parameter_count;
}

// Random weights must not replace trained ones by a slip of the hand.
void CheckFree(const std::string& directory) {
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::error_code none;
    if (!std::filesystem::exists(std::filesystem::path(directory) / name, none)) continue;
    throw mjp::Error(mjp::ExitCode::kUsage,
                     directory + ": holds a checkpoint already (" + name +
                         "); give --force to replace it, or another directory");
  }
}

}  // namespace

Action AddRandomCheckpoint(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "random-checkpoint", "Write a checkpoint of random weights, to try a scene or a speed");
  command->add_option("out", arguments->out, "Directory to write")->required()->type_name("DIR");
  command->add_option("--network", arguments->network, "Its architecture")
      ->type_name("")
      ->check(OneOf(mjp::NamedNetworks()))
      ->capture_default_str();
  auto* config = command
                     ->add_option("--config", arguments->config,
                                  "A config.json of any type: architecture and features")
                     ->type_name("FILE");
  command->add_option("--camera", arguments->cameras, "Features of its pictures")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--picture", arguments->picture, "Width and height of its pictures")
      ->type_name("WxH")
      ->capture_default_str();
  command->add_option("--state", arguments->state, "Numbers of observation.state")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--environment", arguments->environment,
                   "Numbers of observation.environment_state")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--action", arguments->action, "Numbers of an action")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--range", arguments->range,
                   "States and actions lie between -range and range, in the policy's unit")
      ->check(NumberRange(1e-6, 1e6))
      ->capture_default_str();
  auto* seed = command->add_option("--seed", arguments->seed, "Of the weights")
                   ->check(WholeSeed())
                   ->capture_default_str();
  command
      ->add_option("--formula", arguments->formula,
                   "Weights by the formula of docs/CHECKPOINTS.md, with this salt, in F32")
      ->type_name("SALT")
      ->excludes(seed);
  for (const char* option :
       {"--network", "--camera", "--picture", "--state", "--environment", "--action"})
    config->excludes(command->get_option(option));
  command->add_flag("--force", arguments->force, "Replace a checkpoint that is there");
  return [arguments] {
    if (!arguments->force) CheckFree(arguments->out);
    const int64_t parameters = Write(*arguments);
    std::printf("%lld %s weights -> %s\n", static_cast<long long>(parameters),
                arguments->formula ? "formula" : "random", arguments->out.c_str());
    return 0;
  };
}

}  // namespace mjp::app
