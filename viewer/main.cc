// mjpolicy-viewer: a model and its policy in a window, with the time of every stage.

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/command_line/number_range.h"
#include "base/command_line/parse.h"
#include "base/command_line/suggest.h"
#include "base/command_line/time_option.h"
#include "base/error.h"
#include "policy/option_names.h"
#include "tasks/evaluation/program.h"
#include "tasks/evaluation/version.h"
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
    {"--temperature",
     [](const auto& from, auto& to) { to.sampler.temperature = from.sampler.temperature; }},
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
  std::string backend = "auto", precision = "auto", sampler, script, out = ".", picture;
  CLI::App app("A MuJoCo model and its diffusion policy in a window, with the time of every stage",
               "mjpolicy-viewer");
  mjp::app::AddCommonOptions(app, mjp::app::VersionText("mjpolicy-viewer"));
  app.add_option("--checkpoint", options.checkpoint, "Checkpoint directory")
      ->type_name("DIR")
      ->default_str("the one the model names, or the shipped");
  app.add_option("model,--model", options.model,
                 "Model (MJCF): with the policy as its plugin, or Push-T without")
      ->type_name("FILE")
      ->default_str("Push-T");
  app.add_option("--episodes", options.episodes, "Folder of an evaluation, to replay its episodes")
      ->type_name("DIR");
  auto* record = app.add_option("--record", options.record,
                                "Drive the task file MODEL by hand and record a data set here")
                     ->type_name("DIR");
  app.add_option("--hand", options.hand, "The site or body that the arrow keys move")
      ->type_name("NAME")
      ->needs(record)
      ->default_str("the last link before a gripper");
  app.add_option("--picture", picture, "Size of the recorded pictures")
      ->type_name("WxH")
      ->needs(record)
      ->default_str("the camera's resolution, else 320x240");
  app.add_flag("--video", options.pictures.video, "Record AV1 instead of PNG files")->needs(record);
  auto* seed = app.add_option("--seed", options.seed, "Seed of the first episode")
                   ->check(mjp::app::WholeSeed(32))
                   ->default_str("100000; 0 with --record, as mjpolicy record");
  app.add_option("--backend", backend, "Where the network runs")
      ->type_name("")
      ->check(mjp::app::OneOf(mjp::BackendWords()));
  app.add_option("--precision", precision, "Number format of the products on the GPU")
      ->type_name("")
      ->check(mjp::app::OneOf(mjp::PrecisionWords()));
  app.add_option("--sampler", sampler, "Kind of sampler")
      ->type_name("")
      ->check(mjp::app::OneOf(mjp::SamplerWords()))
      ->default_str("as the checkpoint");
  app.add_option("--steps", policy.sampler.steps, "Denoising steps")
      ->check(CLI::Range(1, 1000))
      ->default_str("as the checkpoint");
  app.add_option("--temperature", policy.sampler.temperature,
                 "Deviation of the noise that a chunk is made from: less is likelier")
      ->check(CLI::Range(0.0, mjp::kMostTemperature))
      ->default_str("as the checkpoint");
  app.add_option_function<std::string>(
         "--parallel",
         [&policy](const std::string& text) {
           mjp::ParseParallel("--parallel", text, policy.sampler);
         },
         "W or W,tolerance: W denoising steps evaluated at once; 0: one after the other")
      ->type_name("W")
      ->default_str("where it is faster");
  app.add_option("--hold-noise", policy.sampler.hold_noise,
                 "Decisions in a row that share one noise")
      ->check(CLI::Range(0, mjp::kMostHeldDecisions))
      ->default_str("as many as a chunk lasts");
  app.add_option("--instruction", policy.instruction,
                 "What the robot is to do, in words: of a policy that reads it")
      ->type_name("WORDS");
  app.add_option("--threads", policy.threads, "CPU threads of the policy; the window wants one too")
      ->check(CLI::Range(1, 1024));
  app.add_option("--budget", options.budget_ms, "Budget of a decision")
      ->type_name("MS")
      ->transform(mjp::app::TimeIn(mjp::kMillisecondInSeconds, 0.001, 1e6))
      ->default_str("the control period");
  auto* scale = app.add_option("--scale", options.scale, "Screen pixels per layout pixel")
                    ->check(mjp::app::NumberRange(0.5, 8))
                    ->default_str("the screen's");
  app.add_option("--width", options.width, "Width of the window, from 480 on")
      ->check(CLI::Range(kLeastWidth, 16384))
      ->capture_default_str();
  app.add_option("--height", options.height, "Height of the window, from 300 on")
      ->check(CLI::Range(kLeastHeight, 16384))
      ->capture_default_str();
  app.add_option("--script", script, "Run a script without a display: a file, 'readme' or 'bench'")
      ->type_name("FILE");
  app.add_option("--out", out, "Folder of the script's pictures")->type_name("DIR");
  if (const auto code = mjp::app::ParseCommandLine(app, argc, argv)) return *code;
  policy.backend = mjp::ParseBackend("--backend", backend);
  policy.precision = mjp::ParsePrecision("--precision", precision);
  if (!sampler.empty()) policy.sampler.kind = mjp::ParseSampler("--sampler", sampler);
  options.overrule = Overrule(app, policy);
  // what is evaluated starts at 100000, and is not to be learned from
  if (!options.record.empty() && seed->count() == 0) options.seed = 0;
  if (!picture.empty()) options.pictures.SetSize("--picture", picture);
  if (!options.record.empty() && options.model.empty()) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--record needs a task file: mjpolicy-viewer MODEL.xml "
                     "--record DIR");
  }
  if (!script.empty()) CheckPictureSize(options);
  if (!script.empty()) return mjp::app::RunScript(options, script, out);
  if (scale->count() == 0) options.scale = 0;
  return mjp::app::RunWindow(options);
}

}  // namespace

int main(int argc, char** argv) {
  return mjp::app::RunProgram("mjpolicy-viewer", [&] { return Run(argc, argv); });
}
