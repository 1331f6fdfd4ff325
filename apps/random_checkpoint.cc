#include "policy/checkpoint/random_checkpoint.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "apps/commands.h"
#include "base/error.h"
#include "base/number_range.h"
#include "policy/checkpoint/checkpoint_writer.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::string out, network = "compact";
  std::vector<std::string> cameras{"observation.image"};
  int state = 2, environment = 0, action = 2;
  float range = 1;
  uint64_t seed = 0;
  bool force = false;
};

// `dim` numbers between -range and range
mjp::FeatureStats Range(int dim, float range) {
  const auto size = static_cast<size_t>(dim);
  return {mjp::Normalization::kMinMax, std::vector<float>(size, -range),
          std::vector<float>(size, range)};
}

std::shared_ptr<const mjp::Checkpoint> Make(const Arguments& arguments) {
  mjp::UnetPolicyConfig config = mjp::NamedConfig(arguments.network);
  mjp::NormalizerStats stats;
  const mjp::CameraFeature picture = config.cameras[0];
  config.cameras.clear();
  for (const std::string& name : arguments.cameras) {
    config.cameras.push_back(picture);
    config.cameras.back().name = name;
    stats.cameras.push_back({mjp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}});
  }
  config.state_dim = arguments.state;
  config.environment_dim = arguments.environment;
  config.action_dim = arguments.action;
  stats.state = Range(arguments.state, arguments.range);
  stats.environment = Range(arguments.environment, arguments.range);
  stats.action = Range(arguments.action, arguments.range);
  return mjp::RandomCheckpoint(config, stats, arguments.seed);
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
  command->add_option("out", arguments->out, "Directory to write")->required();
  command->add_option("--network", arguments->network, "Its architecture")
      ->check(CLI::IsMember(mjp::NamedNetworks()))
      ->capture_default_str();
  command->add_option("--camera", arguments->cameras, "Features of its 96 x 96 pictures")
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
  command->add_option("--seed", arguments->seed, "Of the weights")->capture_default_str();
  command->add_flag("--force", arguments->force, "Replace a checkpoint that is there");
  return [arguments] {
    if (!arguments->force) CheckFree(arguments->out);
    const auto checkpoint = Make(*arguments);
    mjp::WriteCheckpoint(arguments->out, *checkpoint, mjp::WeightFormat::kF16);
    std::printf("%lld random weights -> %s\n", static_cast<long long>(checkpoint->parameter_count),
                arguments->out.c_str());
    return 0;
  };
}

}  // namespace mjp::app
