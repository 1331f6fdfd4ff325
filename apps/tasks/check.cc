#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/commands.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "plugin/policies/cache.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/network_model.h"
#include "tasks/demonstration/episode_world.h"
#include "tasks/demonstration/frames.h"
#include "tasks/mjcf/check/attributes.h"
#include "tasks/mjcf/check/terms.h"
#include "tasks/mjcf/pictures/requested_pictures.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/recording/png.h"
#include "tasks/task_code.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::string model, checkpoint, out = "check";
  uint32_t seed = 100000;
  int resets = 100;
};

// The checkpoint that is asked for, or else that of the file where the plugin finds it.
std::shared_ptr<const Checkpoint> FindCheckpoint(const Arguments& arguments, const TaskFile& file) {
  if (!arguments.checkpoint.empty()) return LoadCheckpoint(arguments.checkpoint);
  const std::string named = file.policy().config.checkpoint;
  std::filesystem::path found;
  try {
    found = FindCheckpointDirectory(named, {std::filesystem::path(arguments.model).parent_path()});
  } catch (const NoCheckpoint&) {
    std::printf("checkpoint      none at %s: the file is checked alone; give --checkpoint\n",
                named.c_str());
    return nullptr;
  }
  std::printf("checkpoint      %s\n", found.c_str());
  return LoadCheckpoint(found.string());
}

// What the policy sees of the first start, in the size that the checkpoint has, by the file's
// renderer.
datasets::Frame LookAtStart(const Arguments& arguments, const TaskFile& file,
                            const PolicyConfig* config, EpisodeWorld& world) {
  PictureOptions options;
  if (config && !config->cameras.empty()) {
    options.width = config->cameras[0].width;
    options.height = config->cameras[0].height;
  }
  FrameMaker frames(file, options);
  world.Start(arguments.seed);
  return frames.Look(world);
}

// Writes the picture of each camera of the policy at the first start. Adds to `misfits` where the
// renderer refuses those of the checkpoint, to `warnings` where the checkpoint names no size.
void DrawCameras(const Arguments& arguments, const TaskFile& file, const PolicyConfig* config,
                 EpisodeWorld& world, std::vector<std::string>& warnings,
                 std::vector<std::string>& misfits) {
  if (file.policy().config.cameras.empty()) return;
  datasets::Frame frame;
  try {
    frame = LookAtStart(arguments, file, config, world);
  } catch (const Error& error) {
    const bool refused = error.code() == ExitCode::kBadInput;
    if (!refused && error.code() != ExitCode::kEnvironment) throw;
    std::printf("pictures        none: %s\n", error.what());
    if (!refused) return;  // no OpenGL here: no fault of the file
    if (config && !config->cameras.empty()) {
      misfits.push_back("the file's renderer does not draw the checkpoint's pictures of " +
                        std::to_string(config->cameras[0].width) + " x " +
                        std::to_string(config->cameras[0].height) + " pixels");
    } else {
      warnings.push_back(
          "the file's renderer refuses pictures of the camera's own size; give a "
          "--checkpoint with cameras to try those of the policy");
    }
    return;
  }
  std::error_code code;
  std::filesystem::create_directories(arguments.out, code);
  if (code) {
    throw BadInput(arguments.out + ": cannot create the folder of the pictures: " + code.message() +
                   "; give another --out");
  }
  for (const auto& [feature, drawn] : frame.pictures) {
    Picture picture(drawn.width, drawn.height, 0);
    picture.rgb = drawn.rgb;
    const std::string path = arguments.out + "/" + feature.substr(feature.rfind('.') + 1) + ".png";
    WritePng(path, picture);
    std::printf("picture         %s (%d x %d)\n", path.c_str(), drawn.width, drawn.height);
  }
}

// Prints how the pictures of its training were drawn, and adds to `warnings` where the file's are
// not.
void CompareLooks(const TaskFile& file, const Checkpoint& checkpoint,
                  std::vector<std::string>& warnings) {
  const PictureLooks trained = checkpoint.network->trained_looks();
  if (trained.empty()) return;
  for (const auto& [camera, look] : trained) {
    std::printf("look            %s in training: drawn %s\n", camera.c_str(),
                LookText(look).c_str());
  }
  const PolicyConfig& config = checkpoint.config;
  const std::string unlike = UnlikeTraining(config.cameras, trained, LooksOf(file, config));
  if (!unlike.empty()) warnings.push_back("the policy " + unlike);
}

int Run(const Arguments& arguments) {
  const auto task = std::make_shared<const TaskFile>(arguments.model);
  const TaskFile& file = *task;
  std::printf("task            %s: %d control steps of %g s\n", file.name().c_str(),
              file.rules().steps(), file.period());
  const auto checkpoint = FindCheckpoint(arguments, file);
  std::vector<TermRow> rows = ListTerms(file, checkpoint ? &checkpoint->stats : nullptr);
  std::unique_ptr<TaskCode> code = MakeTaskCode(file);
  const bool has_code = code != nullptr;  // which judges
  EpisodeWorld world(task, std::move(code));
  OverAtStart over(file.rules());
  for (int i = 0; i < arguments.resets; ++i) {
    world.Start(arguments.seed + static_cast<uint32_t>(i));
    SeeStart(file.policy(), world.data(), rows);
    if (!has_code) over.See(world.data()->sensordata);
  }
  std::printf("starts          %d, from seed %u\n\n%s\n", arguments.resets, arguments.seed,
              TermTable(rows).c_str());
  std::vector<std::string> warnings = TermWarnings(rows);
  const PolicyConfig* config = checkpoint ? &checkpoint->config : nullptr;
  std::ranges::move(over.Warnings(), std::back_inserter(warnings));
  std::ranges::move(AttributeWarnings(file, config), std::back_inserter(warnings));
  if (checkpoint) CompareLooks(file, *checkpoint, warnings);
  std::vector<std::string> misfits;
  if (checkpoint) misfits = Misfits(file, checkpoint->config);
  if (checkpoint && checkpoint->config.cameras.size() > 1) {
    for (const std::string& line : CameraOrder(file, checkpoint->config)) {
      std::printf("picture         %s\n", line.c_str());
    }
  }
  DrawCameras(arguments, file, config, world, warnings, misfits);
  for (const std::string& warning : warnings) std::printf("warning         %s\n", warning.c_str());
  for (const std::string& misfit : misfits) std::printf("error           %s\n", misfit.c_str());
  std::printf("verdict         %s\n", !misfits.empty()    ? "the checkpoint does not fit the file"
                                      : !warnings.empty() ? "fits, with the warnings above"
                                                          : "nothing looks wrong");
  return static_cast<int>(misfits.empty() ? ExitCode::kOk : ExitCode::kBadInput);
}

}  // namespace

Action AddCheck(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "check", "Look for what is wrong in a task file, and with a policy for it");
  command->add_option("model", arguments->model, "Task file (docs/tasks.md)")
      ->required()
      ->type_name("MODEL.xml");
  command->add_option("--checkpoint", arguments->checkpoint, "Compare with what it was trained on")
      ->type_name("DIR");
  command->add_option("--resets", arguments->resets, "Starts to look at")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "Seed of the first start")
      ->check(WholeSeed(32))
      ->capture_default_str();
  command->add_option("--out", arguments->out, "Folder of a picture of each camera")
      ->type_name("DIR")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  mjpolicy check models/cart_pole.xml\n"
      "  mjpolicy check models/cart_pole.xml --checkpoint cart_random --out pictures\n"
      "Exit code 2 where the file is no task, or the checkpoint does not fit; warnings are 0.");
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app
