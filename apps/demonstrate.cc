#include <iostream>
#include <memory>

#include "apps/commands.h"
#include "apps/stop_signal.h"
#include "apps/tasks/task_option.h"
#include "base/number_range.h"
#include "tasks/pusht/planner/demonstrations.h"

namespace mjp::app {

Action AddDemonstrate(CLI::App& app) {
  auto options = std::make_shared<DemonstrateOptions>();
  CLI::App* command =
      app.add_subcommand("demonstrate", "Make demonstrations with the sampling planner");
  AddTaskOption(*command);
  command->add_option("--out", options->out, "Folder of the demonstrations")->required();
  command->add_option("--rows", options->rows, "Rows at least")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000000}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "CPU threads; 0: all cores")
      ->check(CLI::Range(0, 1024));
  StreamOptions& stream = options->stream;
  command->add_option("--seed", stream.seed, "Names all randomness")->capture_default_str();
  command->add_option("--samples", stream.planner.samples, "Candidates per round of the planner")
      ->check(CLI::Range(32, 65536))
      ->capture_default_str();
  command->add_option("--rounds", stream.planner.rounds, "Rounds of the planner")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  command
      ->add_option("--speed-limit", stream.planner.cost.speed_limit,
                   "Pixels per control step beyond which a plan is dear")
      ->check(NumberRange(1, 100))
      ->capture_default_str();
  return [options] {
    if (RunDemonstrate(*options, std::cerr, StopOnSignal())) return 0;
    std::cerr << "stopped; finished streams are kept, go on with the same command" << std::endl;
    return StoppedExitCode();
  };
}

}  // namespace mjp::app
