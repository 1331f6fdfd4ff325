// mjpolicy-viewer: a model and its policy in a window, with the time of every stage.

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/number_range.h"
#include "policy/option_names.h"
#include "tasks/evaluation/program.h"
#include "viewer/panels/plot.h"
#include "viewer/viewer.h"

namespace {

using mjp::app::kLeastHeight;
using mjp::app::kLeastWidth;

// Options of the policy: each that is given overrules an attribute of a model's plugin.
struct PolicyOption {
  const char* name;
  void (*copy)(const mjp::PolicyOptions& from, mjp::PolicyOptions& to);
};
constexpr PolicyOption kPolicyOptions[] = {
    {"--backend", [](const auto& from, auto& to) { to.backend = from.backend; }},
    {"--precision", [](const auto& from, auto& to) { to.precision = from.precision; }},
    {"--sampler", [](const auto& from, auto& to) { to.sampler.kind = from.sampler.kind; }},
    {"--steps", [](const auto& from, auto& to) { to.sampler.steps = from.sampler.steps; }},
    {"--parallel",
     [](const auto& from, auto& to) {
       to.sampler.parallel_window = from.sampler.parallel_window;
       to.sampler.parallel_tolerance = from.sampler.parallel_tolerance;
     }},
    {"--hold-noise",
     [](const auto& from, auto& to) { to.sampler.hold_noise = from.sampler.hold_noise; }},
    {"--threads", [](const auto& from, auto& to) { to.threads = from.threads; }},
    {"--instruction", [](const auto& from, auto& to) { to.instruction = from.instruction; }},
};

// Copies the options that were given.
std::function<void(mjp::PolicyOptions&)> Overrule(const CLI::App& app,
                                                  const mjp::PolicyOptions& given) {
  std::vector<PolicyOption> options;
  for (const PolicyOption& option : kPolicyOptions) {
    if (app.count(option.name) > 0) options.push_back(option);
  }
  return [options, given](mjp::PolicyOptions& to) {
    for (const PolicyOption& option : options) option.copy(given, to);
  };
}

// A script's pictures have so many pixels, of which the layout needs some at every scale.
void CheckPictureSize(const mjp::app::ViewerOptions& options) {
  const int width = static_cast<int>(std::ceil(kLeastWidth * options.scale));
  const int height = static_cast<int>(std::ceil(kLeastHeight * options.scale));
  if (options.width >= width && options.height >= height) return;
  throw mjp::Error(mjp::ExitCode::kUsage,
                   "--scale " + mjp::app::Format("%g", options.scale) +
                       " needs pictures of at least " + std::to_string(width) + " x " +
                       std::to_string(height) + " pixels: give --width and --height");
}

int Run(int argc, char** argv) {
  mjp::app::ViewerOptions options;
  mjp::PolicyOptions policy;
  std::string backend = "auto", precision = "auto", sampler, script, out = ".";
  CLI::App app("A MuJoCo model and its diffusion policy in a window, with the time of every stage",
               "mjpolicy-viewer");
  app.add_option("--checkpoint", options.checkpoint,
                 "Checkpoint directory; default: the one the model names, or the shipped");
  app.add_option("--model", options.model,
                 "Model (MJCF): with the policy as its plugin, or Push-T without; default: Push-T");
  app.add_option("--episodes", options.episodes, "Folder of an evaluation, to replay its episodes");
  app.add_option("--seed", options.seed, "Seed of the first episode")->capture_default_str();
  app.add_option("--backend", backend, "Where the network runs: auto, cpu or cuda");
  app.add_option("--precision", precision, "auto, fp32, tf32, fp16 or bf16 (GPU)");
  app.add_option("--sampler", sampler, "ddpm or ddim; default as the checkpoint");
  app.add_option("--steps", policy.sampler.steps, "Denoising steps")->check(CLI::Range(1, 1000));
  app.add_option_function<std::string>(
      "--parallel",
      [&policy](const std::string& text) {
        mjp::ParseParallel("--parallel", text, policy.sampler);
      },
      "W or W,tolerance: W denoising steps evaluated at once; 0: one after the other");
  app.add_option("--hold-noise", policy.sampler.hold_noise,
                 "Decisions in a row that share one noise; default as many as a chunk lasts")
      ->check(CLI::Range(0, mjp::kMostHeldDecisions));
  app.add_option("--instruction", policy.instruction,
                 "What the robot is to do, in words: of a policy that reads it");
  app.add_option("--threads", policy.threads, "CPU threads of the policy; the window wants one too")
      ->check(CLI::Range(1, 1024));
  app.add_option("--budget", options.budget_ms, "Budget of a decision, ms; default: control period")
      ->check(mjp::app::NumberRange(0.001, 1e6));
  auto* scale = app.add_option("--scale", options.scale, "Screen pixels per layout pixel")
                    ->check(mjp::app::NumberRange(0.5, 8));
  app.add_option("--width", options.width, "Width of the window, from 480 on")
      ->check(CLI::Range(kLeastWidth, 16384))
      ->capture_default_str();
  app.add_option("--height", options.height, "Height of the window, from 300 on")
      ->check(CLI::Range(kLeastHeight, 16384))
      ->capture_default_str();
  app.add_option("--script", script, "Run a script without a display: a file, 'readme' or 'bench'");
  app.add_option("--out", out, "Folder of the script's pictures");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(mjp::ExitCode::kUsage);
  }
  policy.backend = mjp::ParseBackend("--backend", backend);
  policy.precision = mjp::ParsePrecision("--precision", precision);
  if (!sampler.empty()) policy.sampler.kind = mjp::ParseSampler("--sampler", sampler);
  options.overrule = Overrule(app, policy);
  if (!script.empty()) CheckPictureSize(options);
  if (!script.empty()) return mjp::app::RunScript(options, script, out);
  if (scale->count() == 0) options.scale = 0;
  return mjp::app::RunWindow(options);
}

}  // namespace

int main(int argc, char** argv) {
  return mjp::app::RunProgram("mjpolicy-viewer", [&] { return Run(argc, argv); });
}
