#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/stop_signal.h"
#include "base/error.h"
#include "base/number_range.h"
#include "tasks/aloha/demonstrations.h"
#include "tasks/evaluation/version.h"
#include "tasks/pusht/planner/demonstrations.h"
#include "tasks/task_names.h"

namespace mjp::app {
namespace {

// A task that is a file, by the name of its model: code has the expert alone.
constexpr char kAlohaTask[] = "aloha_transfer_cube";

// The command's options: those of both tasks, and the values of each.
struct Arguments {
  std::string task = kPusht, out;
  int threads = 0;
  std::optional<uint64_t> seed;
  DemonstrateOptions pusht;
  TransferOptions aloha;
  std::vector<CLI::Option*> pusht_options, aloha_options;
};

void AddPushtOptions(CLI::App& command, Arguments& arguments) {
  StreamOptions& stream = arguments.pusht.stream;
  arguments.pusht_options = {
      command.add_option("--rows", arguments.pusht.rows, "Rows at least")
          ->check(CLI::Range(int64_t{1}, int64_t{1000000000}))
          ->capture_default_str(),
      command
          .add_option("--samples", stream.planner.samples, "Candidates per round of the planner")
          ->check(CLI::Range(32, 65536))
          ->capture_default_str(),
      command.add_option("--rounds", stream.planner.rounds, "Rounds of the planner")
          ->check(CLI::Range(1, 16))
          ->capture_default_str(),
      command
          .add_option("--speed-limit", stream.planner.cost.speed_limit,
                      "Pixels per control step beyond which a plan is dear")
          ->check(NumberRange(1, 100))
          ->capture_default_str()};
  for (CLI::Option* option : arguments.pusht_options) option->group("Push-T");
}

void AddAlohaOptions(CLI::App& command, Arguments& arguments) {
  TransferOptions& aloha = arguments.aloha;
  arguments.aloha_options = {
      command.add_option("--episodes", aloha.episodes, "Starts, of consecutive seeds")
          ->check(CLI::Range(1, 1000000))
          ->capture_default_str(),
      command
          .add_option("--noise", aloha.noise,
                      "Radians by which the arms stray from the actions that are recorded")
          ->check(NumberRange(0, 0.1))
          ->capture_default_str(),
      command.add_flag("--mishaps", aloha.mishaps,
                       "Begin where something went wrong: strayed, dropped, pushed, missed"),
      command.add_flag("!--one-style", aloha.variety, "The same ways and speeds in all episodes")};
  for (CLI::Option* option : arguments.aloha_options) option->group("ALOHA");
}

void RefuseOptionsOf(const std::vector<CLI::Option*>& options, const Arguments& arguments) {
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    throw Error(ExitCode::kUsage,
                option->get_name() + " is no option of the task " + arguments.task);
  }
}

bool Run(Arguments& arguments) {
  if (arguments.task == kAlohaTask) {
    RefuseOptionsOf(arguments.pusht_options, arguments);
    arguments.aloha.out = arguments.out;
    arguments.aloha.threads = arguments.threads;
    arguments.aloha.version = ProjectVersion();
    if (arguments.seed.value_or(0) > std::numeric_limits<uint32_t>::max())
      throw Error(ExitCode::kUsage, "--seed of this task is less than 2^32");
    arguments.aloha.seed = static_cast<uint32_t>(arguments.seed.value_or(arguments.aloha.seed));
    return RunTransfers(arguments.aloha, std::cout, StopOnSignal());
  }
  RefuseOptionsOf(arguments.aloha_options, arguments);
  if (arguments.out.empty()) throw Error(ExitCode::kUsage, "--out is required");
  arguments.pusht.out = arguments.out;
  arguments.pusht.threads = arguments.threads;
  arguments.pusht.stream.seed = arguments.seed.value_or(arguments.pusht.stream.seed);
  return RunDemonstrate(arguments.pusht, std::cerr, StopOnSignal());
}

}  // namespace

Action AddDemonstrate(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "demonstrate", "Make demonstrations with a task's planner, or measure how well it does");
  command->add_option("--task", arguments->task, "Which task")
      ->type_name("")
      ->check(OneOf({kPusht, kAlohaTask}))
      ->capture_default_str();
  command
      ->add_option("--out", arguments->out,
                   "Folder of the demonstrations; ALOHA without it: rates alone")
      ->type_name("DIR");
  command->add_option("--threads", arguments->threads, "CPU threads; 0: all cores")
      ->check(CLI::Range(0, 1024));
  command->add_option("--seed", arguments->seed, "Names all randomness; ALOHA: of the first start");
  AddPushtOptions(*command, *arguments);
  AddAlohaOptions(*command, *arguments);
  return [arguments] {
    if (Run(*arguments)) return 0;
    std::cerr << (arguments->out.empty()
                      ? "stopped; nothing was to be written"
                      : "stopped; what is finished is kept, go on with the same command")
              << std::endl;
    return StoppedExitCode();
  };
}

}  // namespace mjp::app
