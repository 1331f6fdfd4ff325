// image-diffusion: trains, draws and measures diffusion models of small pictures.

#include "apps/image_diffusion/commands.h"
#include "tasks/evaluation/program.h"

namespace {

int Run(int argc, char** argv) {
  CLI::App app("Diffusion models of small pictures, on the engine's own kernels",
               "image-diffusion");
  return mjp::app::RunSubcommand(app,
                                 {mjp::app::AddImageTrain, mjp::app::AddImageSample,
                                  mjp::app::AddImageBenchmark, mjp::app::AddImageEvaluate},
                                 argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return mjp::app::RunProgram("image-diffusion", [&] { return Run(argc, argv); });
}
