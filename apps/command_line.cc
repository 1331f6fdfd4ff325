#include "apps/command_line.h"

#include <utility>
#include <vector>

#include "kernels/error.h"

namespace pusht {

int RunSubcommand(CLI::App& app, std::initializer_list<Action (*)(CLI::App&)> adders, int argc,
                  char** argv) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (auto* add : adders) {
    Action action = add(app);
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

}  // namespace pusht
