// pusht: the command-line program. One file per subcommand beside this one.

#include "apps/commands.h"
#include "apps/version.h"
#include "task/program.h"

namespace {

int Run(int argc, char** argv) {
  CLI::App app("Push-T in MuJoCo, driven by a diffusion policy", "pusht");
  app.set_version_flag("--version", pusht::VersionText());
  return pusht::RunSubcommand(
      app,
      {pusht::AddEvaluate, pusht::AddMerge, pusht::AddCompare, pusht::AddDemonstrate,
       pusht::AddReplay, pusht::AddRender, pusht::AddInfer, pusht::AddInspect,
       pusht::AddInstallPlugin, pusht::AddRandomCheckpoint, pusht::AddBench, pusht::AddProfile},
      argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return pusht::RunProgram("pusht", [&] { return Run(argc, argv); });
}
