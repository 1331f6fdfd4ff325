#include <cstdio>
#include <memory>

#include "apps/commands.h"
#include "policy/checkpoint/checkpoint.h"

namespace mjp::app {

Action AddInspect(CLI::App& app) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("inspect", "Show a checkpoint as a table");
  command->add_option("checkpoint", *directory, "Checkpoint directory")->required();
  return [directory] {
    std::printf("%s", mjp::InspectCheckpoint(*directory).c_str());
    return 0;
  };
}

}  // namespace mjp::app
