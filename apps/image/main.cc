// image-diffusion: trains, draws and measures diffusion models of small pictures.

#include <csignal>
#include <cstdio>
#include <exception>
#include <vector>

#include "apps/image/commands.h"
#include "kernels/error.h"

namespace {

int Run(int argc, char** argv) {
  CLI::App app("Diffusion models of small pictures, on the engine's own kernels",
               "image-diffusion");
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, std::function<int()>>> commands;
  for (auto* add : {pusht::AddImageTrain, pusht::AddImageSample, pusht::AddImageBenchmark,
                    pusht::AddImageEvaluate}) {
    std::function<int()> action = add(app);
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
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return Run(argc, argv);
  } catch (const dp::Error& error) {
    std::fprintf(stderr, "image-diffusion: error: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "image-diffusion: error: %s\n", error.what());
    return static_cast<int>(dp::ExitCode::kEnvironment);
  }
}
