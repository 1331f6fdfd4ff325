// image-diffusion: trains, draws and measures diffusion models of small pictures.

#include "apps/image/commands.h"
#include "task/program.h"

namespace {

int Run(int argc, char** argv) {
  CLI::App app("Diffusion models of small pictures, on the engine's own kernels",
               "image-diffusion");
  return pusht::RunSubcommand(app,
                              {pusht::AddImageTrain, pusht::AddImageSample,
                               pusht::AddImageBenchmark, pusht::AddImageEvaluate},
                              argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return pusht::RunProgram("image-diffusion", [&] { return Run(argc, argv); });
}
