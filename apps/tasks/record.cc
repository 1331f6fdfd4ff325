#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/policy_options.h"
#include "apps/stop_signal.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "base/text_stream.h"
#include "policy/checkpoint/checkpoint.h"
#include "tasks/demonstration/checkpoint_demonstrator.h"
#include "tasks/demonstration/planner.h"
#include "tasks/demonstration/recorder.h"
#include "tasks/demonstration/stand_ins.h"
#include "tasks/task_code.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::string model, checkpoint, by, picture;
  RecordOptions record;
  SamplingOptions sampling;
  PolicyOptions policy;
  const CLI::App* command = nullptr;
  std::vector<CLI::Option*> of_planner, of_policy;  // that only these demonstrators read
};

// Who demonstrates where --by does not say it.
std::string Demonstrators(const Arguments& arguments, const TaskFile& file) {
  if (!arguments.checkpoint.empty()) {
    if (arguments.by.empty() || arguments.by == "checkpoint") return "checkpoint";
    throw Error(ExitCode::kUsage, "--checkpoint and --by " + arguments.by + " exclude each other");
  }
  if (arguments.by == "checkpoint")
    throw Error(ExitCode::kUsage, "--by checkpoint: which one? give --checkpoint DIR");
  if (!arguments.by.empty()) return arguments.by;
  return HasExpert(file) ? "expert" : "planner";
}

void RefuseUnread(const std::vector<CLI::Option*>& options, const std::string& reader) {
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    throw Error(ExitCode::kUsage,
                option->get_name() + ": is read with " + reader + " alone; leave it out");
  }
}

std::map<std::string, std::string> AttributesOf(const Arguments& arguments) {
  std::map<std::string, std::string> attributes =
      AttributesGiven(*arguments.command, arguments.policy);
  attributes["threads"] = "1";  // one simulation for each thread
  attributes["checkpoint"] = std::filesystem::absolute(arguments.checkpoint).string();
  return attributes;
}

// What the actions of who demonstrates depend on, besides the task file and the seed.
std::map<std::string, std::string> SettingsOf(const Arguments& arguments, const std::string& by,
                                              const TaskFile& file) {
  if (by == "planner") {
    TextWriter samples, horizon;
    samples << arguments.sampling.samples;
    horizon << arguments.sampling.horizon;
    return {{"samples", samples.str()}, {"horizon", horizon.str()}};
  }
  if (by != "checkpoint") return {};
  std::map<std::string, std::string> settings = LoadCheckpoint(arguments.checkpoint)->files;
  const std::map<std::string, std::string> given = AttributesOf(arguments);
  for (const char* name :
       {"sampler", "steps", "temperature", "parallel", "hold_noise", "prefix", "instruction"}) {
    const char* own = mj_getPluginConfig(file.model(), file.instance(), name);
    const std::string value = given.contains(name) ? given.at(name) : own ? own : "";
    if (!value.empty()) settings[name] = value;
  }
  return settings;
}

DemonstratorFactory FactoryOf(const Arguments& arguments, const std::string& by,
                              const std::shared_ptr<const TaskFile>& file) {
  if (by == "checkpoint") {
    return CheckpointDemonstrators(file, AttributesOf(arguments));
  }
  if (by == "hold") return [file] { return MakeHold(*file); };
  if (by == "noise") return [file] { return MakeNoise(*file); };
  if (by == "expert") return [file] { return MakeExpert(*file); };
  return [file, sampling = arguments.sampling] { return MakeSamplingPlanner(*file, sampling); };
}

// A line for each episode that has become readable; on a terminal one that is rewritten.
void ShowProgress(const RecordProgress& progress, int64_t wanted, int64_t& shown) {
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  if (progress.saved > wanted) return;  // it had more already
  if (!terminal && progress.saved == shown) return;
  shown = progress.saved;
  std::printf("%ssaved %lld of %lld episodes (played %lld, success %lld)%s", terminal ? "\r" : "",
              static_cast<long long>(progress.saved), static_cast<long long>(wanted),
              static_cast<long long>(progress.played), static_cast<long long>(progress.succeeded),
              terminal ? "\033[K" : "\n");
  std::fflush(stdout);
}

int Run(Arguments& arguments) {
  auto file = std::make_shared<const TaskFile>(arguments.model);
  RecordOptions& record = arguments.record;
  const std::string by = Demonstrators(arguments, *file);
  if (by != "planner") RefuseUnread(arguments.of_planner, "--by planner");
  if (by != "checkpoint") RefuseUnread(arguments.of_policy, "--checkpoint");
  record.by = by;
  record.settings = SettingsOf(arguments, by, *file);
  record.threads = arguments.policy.threads;
  if (!arguments.picture.empty()) record.pictures.SetSize("--picture", arguments.picture);
  const DemonstratorFactory demonstrators = FactoryOf(arguments, by, file);
  std::printf("task            %s: %s\nby              %s%s%s\n", file->name().c_str(),
              DescriptionOf(*file).c_str(), by.c_str(), arguments.checkpoint.empty() ? "" : " ",
              arguments.checkpoint.c_str());
  int64_t shown = -1;
  const std::atomic<bool>& stop = StopOnSignal();
  const RecordProgress progress = Record(
      record, file, demonstrators,
      [&](const RecordProgress& now) { ShowProgress(now, record.episodes, shown); }, stop);
  if (::isatty(STDOUT_FILENO) != 0) std::printf("\n");
  std::printf("data set        %s: %lld episodes%s\n", record.out.c_str(),
              static_cast<long long>(progress.saved),
              progress.saved > record.episodes ? ", more than --episodes asks for" : "");
  if (progress.saved < record.episodes) {
    std::fprintf(stderr, "stopped; go on with the same command\n");
    return StoppedExitCode();
  }
  std::printf("next            mjpolicy dataset %s; mjpolicy-train --dataset %s --out RUN\n",
              record.out.c_str(), record.out.c_str());
  return 0;
}

void AddWho(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--by", arguments.by,
                  "Who demonstrates: the task's expert, a planner for any task file, a checkpoint; "
                  "noise and hold are for tests")
      ->type_name("")
      ->check(OneOf({"expert", "planner", "checkpoint", "noise", "hold"}))
      ->default_str("expert where the task has one, else planner");
  command.add_option("--checkpoint", arguments.checkpoint, "A policy that demonstrates")
      ->type_name("DIR");
  command.add_option("--samples", arguments.sampling.samples, "Candidates of the planner")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str()
      ->group("Planner");
  command.add_option("--horizon", arguments.sampling.horizon, "That the planner looks ahead")
      ->type_name("SECONDS")
      ->transform(TimeIn(1, 0.01, 1000))
      ->default_str("1.5")
      ->group("Planner");
  arguments.of_planner = {command.get_option("--samples"), command.get_option("--horizon")};
}

}  // namespace

Action AddRecord(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("record", "Record demonstrations of a task file as a data set");
  command->add_option("model", arguments->model, "Task file (docs/tasks.md)")
      ->required()
      ->type_name("MODEL.xml");
  command
      ->add_option("--out", arguments->record.out,
                   "Folder of the data set; one that was recorded so is continued")
      ->required()
      ->type_name("DIR");
  AddWho(*command, *arguments);
  command->add_option("--episodes", arguments->record.episodes, "That the data set is to have")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--seed", arguments->record.seed, "Of the first start; the others follow")
      ->check(WholeSeed(32))
      ->capture_default_str();
  AddChoice<bool>(*command, "--keep", "Which episodes", {{"success", false}, {"all", true}},
                  arguments->record.keep_all);
  command->add_option("--max-steps", arguments->record.steps, "Control steps of an episode")
      ->check(CLI::Range(1, 100000))
      ->default_str("as the task says");
  command->add_option("--picture", arguments->picture, "Size of the cameras' pictures")
      ->type_name("WxH")
      ->default_str("the camera's resolution, else 320x240");
  command->add_flag("--video", arguments->record.pictures.video, "AV1 instead of PNG files");
  arguments->of_policy = AddPolicyOptions(*command, arguments->policy);
  arguments->command = command;
  command->footer(
      "Examples:\n"
      "  mjpolicy record models/cart_pole.xml --out cart_data --picture 96x96\n"
      "  mjpolicy record models/aloha_transfer_cube.xml --out cube --episodes 200 --video\n"
      "  mjpolicy record models/cart_pole.xml --checkpoint my_policy --keep all --out seen\n"
      "A person records in the viewer: mjpolicy-viewer MODEL.xml --record DIR.\n"
      "Ctrl-C ends it with all finished episodes saved; the same command goes on. An episode "
      "counts "
      "as saved when it can be read, whatever is killed then.");
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app
