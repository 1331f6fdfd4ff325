// mjpolicy: the command-line program. One file per subcommand beside this one.

#include "apps/commands.h"
#include "tasks/evaluation/program.h"

namespace {

int Run(int argc, char** argv) {
  CLI::App app("Diffusion policies inside MuJoCo: evaluate, measure and inspect them", "mjpolicy");
  return mjp::app::RunSubcommand(app, {mjp::app::AddDoctor,        mjp::app::AddScaffold,
                                       mjp::app::AddCheck,         mjp::app::AddRun,
                                       mjp::app::AddEvaluate,      mjp::app::AddMerge,
                                       mjp::app::AddCompare,       mjp::app::AddReport,
                                       mjp::app::AddDemonstrate,   mjp::app::AddReplay,
                                       mjp::app::AddRender,        mjp::app::AddObserve,
                                       mjp::app::AddInfer,         mjp::app::AddInspect,
                                       mjp::app::AddInstallPlugin, mjp::app::AddRandomCheckpoint,
                                       mjp::app::AddBench,         mjp::app::AddProfile,
                                       mjp::app::AddDataset,       mjp::app::AddConvert,
                                       mjp::app::AddCertify,       mjp::app::AddRecord},
                                 argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return mjp::app::RunProgram("mjpolicy", [&] { return Run(argc, argv); });
}
