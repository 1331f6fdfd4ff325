#include "apps/policy_options.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/command_line/suggest.h"
#include "policy/option_names.h"
#include "tasks/evaluation/plugin_attributes.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"

namespace mjp::app {
namespace {

// An option that is one of `words`.
CLI::Option* AddWordOption(CLI::App& command, const std::string& name, const std::string& help,
                           const std::vector<std::string>& words,
                           const std::function<void(const std::string&)>& set) {
  return command.add_option_function<std::string>(name, set, help)
      ->type_name("")
      ->check(OneOf(words));
}

}  // namespace

std::vector<CLI::Option*> AddPolicyOptions(CLI::App& command, mjp::PolicyOptions& options) {
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.scene_drawer = &mjp::FlatSceneDrawer();
  AddWordOption(command, "--backend", "Where the network runs", mjp::BackendWords(),
                [&options](const std::string& word) {
                  options.backend = mjp::ParseBackend("--backend", word);
                })
      ->default_str("auto");
  AddWordOption(command, "--precision", "Number format of the products on the GPU",
                mjp::PrecisionWords(),
                [&options](const std::string& word) {
                  options.precision = mjp::ParsePrecision("--precision", word);
                })
      ->default_str("auto");
  AddWordOption(command, "--sampler", "Kind of sampler", mjp::SamplerWords(),
                [&options](const std::string& word) {
                  options.sampler.kind = mjp::ParseSampler("--sampler", word);
                })
      ->default_str("as the checkpoint");
  command.add_option("--steps", options.sampler.steps, "Denoising steps")
      ->check(CLI::Range(1, 1000))
      ->default_str("as the checkpoint");
  command
      .add_option("--temperature", options.sampler.temperature,
                  "Deviation of the noise that a chunk is made from: less is likelier")
      ->check(CLI::Range(0.0, mjp::kMostTemperature))
      ->default_str("as the checkpoint");
  auto* parallel = command.add_option_function<std::string>(
      "--parallel",
      [&options](const std::string& text) {
        mjp::ParseParallel("--parallel", text, options.sampler);
      },
      "Time-parallel denoising: W or W,tolerance, W steps evaluated at once");
  parallel->type_name("W")->default_str("where it is faster");
  command
      .add_flag_callback(
          "--sequential", [&options] { options.sampler.parallel_window = 0; },
          "Denoise step by step")
      ->excludes(parallel);
  command
      .add_option("--hold-noise", options.sampler.hold_noise,
                  "Decisions in a row that share one noise")
      ->check(CLI::Range(0, mjp::kMostHeldDecisions))
      ->default_str("as many as a chunk lasts");
  command
      .add_option("--instruction", options.instruction,
                  "What the robot is to do, in words: of a policy that reads it")
      ->type_name("WORDS");
  command.add_flag_callback(
      "--no-self-check", [&options] { options.self_check = false; },
      "On a GPU: do not compare one decision with the CPU's at load");
  command.add_option("--threads", options.threads, "CPU threads; results do not depend on it")
      ->check(CLI::Range(1, 1024))
      ->default_str("all cores");
  std::vector<CLI::Option*> of_decisions;
  for (const char* name :
       {"--backend", "--precision", "--sampler", "--steps", "--temperature", "--parallel",
        "--sequential", "--hold-noise", "--instruction", "--no-self-check"}) {
    of_decisions.push_back(command.get_option(name));
  }
  return of_decisions;
}

std::map<std::string, std::string> AttributesGiven(const CLI::App& command,
                                                   const mjp::PolicyOptions& options) {
  std::map<std::string, std::string> attributes = GivenAttributes(options);
  if (command.count("--hold-noise") > 0)
    attributes["hold_noise"] = std::to_string(options.sampler.hold_noise);
  return attributes;
}

}  // namespace mjp::app
