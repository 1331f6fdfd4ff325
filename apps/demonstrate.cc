#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/stop_signal.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "tasks/aloha/demonstrations.h"
#include "tasks/evaluation/version.h"
#include "tasks/pusht/planner/demonstrations.h"
#include "tasks/pusht/planner/planned_episodes.h"
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
  int episodes = 50;
  DemonstrateOptions pusht;
  PlannedEpisodesOptions planned;
  TransferOptions aloha;
  std::vector<CLI::Option*> pusht_options, aloha_options;
  std::vector<CLI::Option*> played_options;  // of Push-T's episodes that are played, not written
};

void AddPlayedOptions(CLI::App& command, Arguments& arguments) {
  arguments.played_options = {
      command
          .add_option("--action-steps", arguments.planned.action_steps,
                      "Without --out: control steps of a plan that are executed")
          ->check(CLI::Range(1, 48))
          ->capture_default_str(),
      command
          .add_option("--push", arguments.planned.pusht.push,
                      "Without --out: push of the block, as evaluate's")
          ->type_name("PIXELS")
          ->check(NumberRange(0.0, 100.0)),
      command
          .add_option("--pushes", arguments.planned.pusht.pushes,
                      "Without --out: so many pushes, as evaluate's")
          ->type_name("N")
          ->check(CLI::Range(1, 100))
          ->default_str("one every two seconds")};
}

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
  AddPlayedOptions(command, arguments);
  arguments.pusht_options.insert(arguments.pusht_options.end(), arguments.played_options.begin(),
                                 arguments.played_options.end());
  for (CLI::Option* option : arguments.pusht_options) option->group("Push-T");
}

void AddAlohaOptions(CLI::App& command, Arguments& arguments) {
  TransferOptions& aloha = arguments.aloha;
  arguments.aloha_options = {
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

// The seed of the first start.
uint32_t SmallSeed(const std::optional<uint64_t>& given, uint32_t otherwise) {
  if (given.value_or(0) > std::numeric_limits<uint32_t>::max())
    throw Error(ExitCode::kUsage, "--seed of starts is less than 2^32");
  return static_cast<uint32_t>(given.value_or(otherwise));
}

void RefuseOptionsOf(const std::vector<CLI::Option*>& options, const Arguments& arguments) {
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    throw Error(ExitCode::kUsage,
                option->get_name() + " is no option of the task " + arguments.task);
  }
}

// Push-T's rates alone.
bool PlayPusht(Arguments& arguments) {
  PlannedEpisodesOptions& options = arguments.planned;
  options.episodes = arguments.episodes;
  options.seed = SmallSeed(arguments.seed, options.seed);
  options.planner = arguments.pusht.stream.planner;
  options.threads = arguments.threads;
  const Figures figures = PlayPlanned(options, StopOnSignal());
  if (figures.episodes < options.episodes) return false;
  std::cout << FiguresText(figures, ScoreMeaning(kPusht));
  return true;
}

bool Run(Arguments& arguments) {
  if (arguments.task == kAlohaTask) {
    RefuseOptionsOf(arguments.pusht_options, arguments);
    arguments.aloha.out = arguments.out;
    arguments.aloha.threads = arguments.threads;
    arguments.aloha.episodes = arguments.episodes;
    arguments.aloha.seed = SmallSeed(arguments.seed, arguments.aloha.seed);
    arguments.aloha.version = ProjectVersion();
    return RunTransfers(arguments.aloha, std::cout, StopOnSignal());
  }
  RefuseOptionsOf(arguments.aloha_options, arguments);
  if (arguments.out.empty()) return PlayPusht(arguments);
  for (const CLI::Option* option : arguments.played_options) {
    if (option->count() == 0) continue;
    throw Error(ExitCode::kUsage, option->get_name() +
                                      " is of the episodes that are played without --out: " +
                                      "demonstrations have starts and disturbances of their own");
  }
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
                   "Folder of the demonstrations; without it: how well the planner does")
      ->type_name("DIR");
  CLI::Option* episodes =
      command->add_option("--episodes", arguments->episodes, "Starts, of consecutive seeds")
          ->check(CLI::Range(1, 1000000))
          ->capture_default_str();
  command->add_option("--threads", arguments->threads, "CPU threads; 0: all cores")
      ->check(CLI::Range(0, 1024));
  command->add_option("--seed", arguments->seed, "Names all randomness; of starts: the first one's")
      ->check(WholeSeed());
  AddPushtOptions(*command, *arguments);
  arguments->played_options.push_back(episodes);
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
