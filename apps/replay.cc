#include "tasks/pusht/replay.h"

#include <cstdio>
#include <memory>

#include "apps/commands.h"
#include "apps/tasks/task_option.h"
#include "base/error.h"
#include "tasks/physics/model.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::string actions, ends, starts, out;
  int threads = 0;
};

int Run(const Arguments& arguments) {
  const Recording recording =
      MakeRecording(ReadNpy(arguments.starts), ReadNpy(arguments.actions), ReadNpy(arguments.ends));
  const ModelPtr model = LoadModel(ModelPath("pusht.xml"));
  const Replay replay = ReplayInMujoco(model.get(), recording, arguments.threads);
  WriteNpy(arguments.out, StatesToNpy(replay.states));
  int failed = 0;
  for (size_t e = 0; e < replay.failures.size(); ++e) {
    if (replay.failures[e].empty()) continue;
    ++failed;
    std::fprintf(stderr, "episode %zu: %s\n", e, replay.failures[e].c_str());
  }
  std::printf("%zu episodes, %zu states -> %s\n", recording.ends.size(), replay.states.size(),
              arguments.out.c_str());
  return static_cast<int>(failed > 0 ? mjp::ExitCode::kPartial : mjp::ExitCode::kOk);
}

}  // namespace

Action AddReplay(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("replay", "Replay recorded actions in the scene");
  AddTaskOption(*command);
  command->add_option("--actions", arguments->actions, "Targets (A, 2), pixels (.npy)")
      ->required()
      ->type_name("FILE");
  command->add_option("--ends", arguments->ends, "End row of each episode (E), exclusive (.npy)")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--starts", arguments->starts,
                   "Starts (E, 5) before the legacy rule: agent x, y, block x, y, angle (.npy)")
      ->required()
      ->type_name("FILE");
  command->add_option("--out", arguments->out, "States (A + E, 5), float64 (.npy)")
      ->required()
      ->type_name("FILE");
  command->add_option("--threads", arguments->threads, "CPU threads; 0: all cores")
      ->check(CLI::Range(0, 1024));
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app
