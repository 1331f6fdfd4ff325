#include "datasets/convert/convert.h"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "apps/commands.h"
#include "apps/stop_signal.h"
#include "base/error.h"

namespace mjp::app {
namespace {

const char* const kExamples = R"(
Examples:
  mjpolicy convert old_set new_set                     LeRobot v2.0 or v2.1 to v3.0
  mjpolicy convert pusht_cchi_v7_replay.zarr pusht --task "push the T" --fps 10
  mjpolicy convert low_dim.hdf5 lift --task "lift the cube" --fps 20 \
           --state robot0_eef_pos robot0_eef_quat robot0_gripper_qpos object
  mjpolicy convert aloha_episodes cube --task "hand over the cube" --fps 50 --video

Interrupted (Ctrl-C), the same command goes on where it was. mjpolicy dataset DST checks the result.)";

int Run(datasets::ConvertOptions options) {
  const std::atomic<bool>& stop = StopOnSignal();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  options.progress = [&](int64_t done, int64_t total) {
    if (terminal) {
      std::fprintf(stderr, "\r%lld of %lld episodes", static_cast<long long>(done),
                   static_cast<long long>(total));
    }
    return !stop.load();
  };
  const datasets::ConvertResult result = datasets::Convert(options);
  if (terminal) std::fprintf(stderr, "\r\033[K");
  std::printf("%s: %lld episodes, %lld frames (from %s)\n", options.destination.c_str(),
              static_cast<long long>(result.episodes), static_cast<long long>(result.frames),
              result.layout.c_str());
  if (result.whole) return 0;
  std::printf("stopped; the same command goes on\n");
  return StoppedExitCode();
}

}  // namespace

Action AddConvert(CLI::App& app) {
  auto options = std::make_shared<datasets::ConvertOptions>();
  CLI::App* command =
      app.add_subcommand("convert", "Make a LeRobotDataset v3.0 of a data set in another layout");
  command->footer(kExamples);
  command
      ->add_option("SRC", options->source,
                   "LeRobot v2 folder, zarr folder, robomimic file, folder of ACT's episodes")
      ->required()
      ->type_name("PATH");
  command->add_option("DST", options->destination, "Folder of the new data set")
      ->required()
      ->type_name("DIR");
  command->add_option("--task", options->task, "What is done, in words (not LeRobot v2)")
      ->type_name("WORDS");
  command->add_option("--fps", options->fps, "Frames per second (not LeRobot v2)")
      ->check(CLI::Range(1, 100000))
      ->default_str("");
  command
      ->add_option("--state", options->state, "Arrays that become observation.state, in this order")
      ->type_name("NAME");
  command->add_flag("--video", options->video, "Pictures as AV1 instead of PNG");
  return [options] { return Run(*options); };
}

}  // namespace mjp::app
