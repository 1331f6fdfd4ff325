#include "apps/policy_options.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "policy/option_names.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"

namespace mjp::app {
namespace {

// An option that is one of `words`.
void AddWordOption(CLI::App& command, const std::string& name, const std::string& help,
                   const std::vector<std::string>& words,
                   const std::function<void(const std::string&)>& set) {
  command.add_option_function<std::string>(name, set, help)->check(CLI::IsMember(words));
}

}  // namespace

void AddPolicyOptions(CLI::App& command, mjp::PolicyOptions& options) {
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.scene_drawer = &mjp::FlatSceneDrawer();
  AddWordOption(command, "--backend", "Where the network runs", mjp::BackendWords(),
                [&options](const std::string& word) {
                  options.backend = mjp::ParseBackend("--backend", word);
                });
  AddWordOption(command, "--precision", "Number format of the products on the GPU",
                mjp::PrecisionWords(), [&options](const std::string& word) {
                  options.precision = mjp::ParsePrecision("--precision", word);
                });
  AddWordOption(command, "--sampler", "Kind of sampler; default as the checkpoint",
                mjp::SamplerWords(), [&options](const std::string& word) {
                  options.sampler.kind = mjp::ParseSampler("--sampler", word);
                });
  command
      .add_option("--steps", options.sampler.steps, "Denoising steps; default as the checkpoint")
      ->check(CLI::Range(1, 1000));
  auto* parallel = command.add_option_function<std::string>(
      "--parallel",
      [&options](const std::string& text) {
        mjp::ParseParallel("--parallel", text, options.sampler);
      },
      "Time-parallel denoising: W or W,tolerance, W steps evaluated at once; default where it is "
      "faster");
  command
      .add_flag_callback(
          "--sequential", [&options] { options.sampler.parallel_window = 0; },
          "Denoise step by step")
      ->excludes(parallel);
  command
      .add_option("--hold-noise", options.sampler.hold_noise,
                  "Decisions in a row that share one noise; default as many as a chunk lasts")
      ->check(CLI::Range(0, mjp::kMostHeldDecisions));
  command.add_option("--instruction", options.instruction,
                     "What the robot is to do, in words: of a policy that reads it");
  command.add_flag_callback(
      "--no-self-check", [&options] { options.self_check = false; },
      "On a GPU: do not compare one decision with the CPU's at load");
  command.add_option("--threads", options.threads, "CPU threads; results do not depend on it")
      ->check(CLI::Range(1, 1024));
}

}  // namespace mjp::app
