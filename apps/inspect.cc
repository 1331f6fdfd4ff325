#include "policy/inspect.h"

#include <cstdio>
#include <memory>

#include "apps/commands.h"

namespace mjp::app {

Action AddInspect(CLI::App& app) {
  auto directory = std::make_shared<std::string>();
  auto options = std::make_shared<mjp::InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Show a checkpoint as a table");
  command->add_option("checkpoint", *directory, "Checkpoint directory")
      ->required()
      ->type_name("DIR");
  command->add_flag("--tensors", options->tensors, "Show name, type and shape of each tensor too");
  command->add_flag("--json", options->json, "Print JSON");
  command
      ->add_option("--gpu", options->gpu,
                   "Show how it runs on this GPU, which need not be here: h200, a100, rtx4090, "
                   "orin, thor, ...")
      ->type_name("GPU");
  return [directory, options] {
    std::fputs(mjp::InspectCheckpoint(*directory, *options).c_str(), stdout);
    return 0;
  };
}

}  // namespace mjp::app
