#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "apps/commands.h"
#include "apps/policy_options.h"
#include "apps/stop_signal.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "plugin/model/config.h"
#include "tasks/mjcf/run_model.h"

namespace mjp::app {
namespace {

struct Arguments {
  RunModelOptions run;
  std::string checkpoint, video;
  PolicyOptions policy;
  const CLI::App* command = nullptr;
};

// One line that is rewritten on a terminal; elsewhere nothing.
void ShowProgress(double seconds, double of) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r%.1f of %.1f s", seconds, of);
  if (seconds >= of) std::fprintf(stderr, "\n");
  std::fflush(stderr);
}

void Print(const RunModelResult& result) {
  const EpisodeResult& episode = result.episode;
  const double simulated = episode.steps * result.period;
  std::printf("model           %s\nsimulated       %.2f s (%d control steps of %g s)%s\n",
              result.name.c_str(), simulated, episode.steps, result.period,
              result.stopped ? ", stopped" : "");
  if (!episode.valid) std::printf("failed          %s\n", episode.reason.c_str());
  if (result.is_task) {
    std::printf("success         %s\n", episode.success() ? "yes" : "no");
    if (episode.success()) {
      std::printf("solved after    %.2f s\n", episode.success_step * result.period);
    }
    std::printf("score           %.4f\n", episode.max_reward);
    for (const TaskMeasure& measure : episode.measures) {
      std::printf("%-15s %.4f at the end, %.4f at most\n", measure.name.c_str(), measure.final,
                  measure.max);
    }
  }
  std::printf("decisions       %d\nspeed           %.2f x real time\n", episode.decisions,
              result.seconds > 0 ? simulated / result.seconds : 0);
  for (const DrivenControl& control : result.controls) {
    std::printf("control         %s: %.4g to %.4g", control.name.c_str(), control.low,
                control.high);
    if (control.cut > 0) {
      std::printf(", cut to its range or action_clip %.0f %% of the time", 100 * control.cut);
    }
    std::printf("\n");
  }
  if (!result.video.empty()) std::printf("video           %s\n", result.video.c_str());
}

// What RunModel calls the video: the file without its suffix.
std::string VideoStem(const std::string& file) {
  const std::filesystem::path video = file;
  const std::string suffix = video.extension().string();
  if (suffix.empty()) return file;
  if (suffix != ".mp4" && suffix != ".avi") {
    throw Error(ExitCode::kUsage, "--video " + file + ": a video is an .mp4, or an .avi without " +
                                      "ffmpeg; name one in place of " + suffix);
  }
  return (video.parent_path() / video.stem()).string();
}

int Run(Arguments& arguments) {
  arguments.run.video = VideoStem(arguments.video);
  std::map<std::string, std::string> attributes =
      AttributesGiven(*arguments.command, arguments.policy);
  attributes["threads"] = std::to_string(arguments.policy.threads);
  if (!arguments.checkpoint.empty()) {
    attributes["checkpoint"] = std::filesystem::absolute(arguments.checkpoint).string();
  }
  SetAttributesInstead(attributes);
  const RunModelResult result = RunModel(arguments.run, ShowProgress, StopOnSignal());
  Print(result);
  if (result.stopped) return StoppedExitCode();
  return static_cast<int>(result.episode.valid ? ExitCode::kOk : ExitCode::kPartial);
}

}  // namespace

Action AddRun(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("run", "Run a model with a policy in it and say what came out");
  command->add_option("model", arguments->run.model, "MJCF with an instance of mjpolicy.policy")
      ->required()
      ->type_name("MODEL.xml");
  command->add_option("--checkpoint", arguments->checkpoint, "In place of the model's own")
      ->type_name("DIR");
  command->add_option("--seconds", arguments->run.seconds, "Simulated time")
      ->transform(TimeIn(1, 0.001, 1e6))
      ->default_str("the task's, else 10");
  command->add_option("--seed", arguments->run.seed, "Of the start and of the noise")
      ->check(WholeSeed(32))
      ->capture_default_str();
  command
      ->add_option("--video", arguments->video,
                   "Record it: .mp4, or .avi without ffmpeg; replaces a file")
      ->type_name("FILE");
  AddPolicyOptions(*command, arguments->policy);
  arguments->command = command;
  command->footer(
      "Examples:\n"
      "  mjpolicy run models/pusht_policy.xml --seconds 30\n"
      "  mjpolicy run models/cart_pole.xml --checkpoint cart_random --seed 7 --video cart.mp4\n"
      "Ctrl-C ends it with what there is so far, the video too. Exit code 4 where the policy or "
      "the physics failed.");
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app
