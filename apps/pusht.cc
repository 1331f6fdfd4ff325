// pusht: the command-line program. One file per subcommand beside this one.

#include <mujoco/mujoco.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "apps/commands.h"
#include "apps/version.h"
#include "kernels/error.h"

namespace {

int Run(int argc, char** argv) {
  CLI::App app("Push-T in MuJoCo, driven by a diffusion policy", "pusht");
  app.require_subcommand(1);
  app.set_version_flag("--version", pusht::VersionText());
  std::vector<std::pair<CLI::App*, pusht::Action>> commands;
  for (auto* add : {pusht::AddEvaluate, pusht::AddMerge, pusht::AddCompare, pusht::AddDemonstrate,
                    pusht::AddReplay, pusht::AddRender, pusht::AddInfer, pusht::AddInspect,
                    pusht::AddInstallPlugin, pusht::AddRandomCheckpoint, pusht::AddBench}) {
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
  // a closed pipe is an error of that write, not the end of the program
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return Run(argc, argv);
  } catch (const dp::Error& error) {
    std::fprintf(stderr, "pusht: error: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pusht: error: %s\n", error.what());
    return static_cast<int>(dp::ExitCode::kEnvironment);
  }
}
