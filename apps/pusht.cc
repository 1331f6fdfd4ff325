// pusht: the command-line program. One file per subcommand beside this one.

#include <string>
#include <utility>
#include <vector>

#include "apps/commands.h"
#include "apps/version.h"
#include "kernels/error.h"
#include "task/program.h"

namespace {

int Run(int argc, char** argv) {
  CLI::App app("Push-T in MuJoCo, driven by a diffusion policy", "pusht");
  app.require_subcommand(1);
  app.set_version_flag("--version", pusht::VersionText());
  std::vector<std::pair<CLI::App*, pusht::Action>> commands;
  for (auto* add :
       {pusht::AddEvaluate, pusht::AddMerge, pusht::AddCompare, pusht::AddDemonstrate,
        pusht::AddReplay, pusht::AddRender, pusht::AddInfer, pusht::AddInspect,
        pusht::AddInstallPlugin, pusht::AddRandomCheckpoint, pusht::AddBench, pusht::AddProfile}) {
    pusht::Action action = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(action));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(dp::ExitCode::kUsage);
  }
  for (auto& [command, action] : commands) {
    if (command->parsed()) return action();
  }
  return static_cast<int>(dp::ExitCode::kUsage);
}

}  // namespace

int main(int argc, char** argv) {
  return pusht::RunProgram("pusht", [&] { return Run(argc, argv); });
}
