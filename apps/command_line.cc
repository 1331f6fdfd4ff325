#include "apps/command_line.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/command_line/parse.h"
#include "base/error.h"
#include "tasks/evaluation/version.h"

namespace mjp::app {

int RunSubcommand(CLI::App& app, std::initializer_list<Action (*)(CLI::App&)> adders, int argc,
                  char** argv) {
  AddCommonOptions(app, VersionText(app.get_name()));
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (auto* add : adders) {
    Action action = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(action));
  }
  if (const std::optional<int> code = ParseCommandLine(app, argc, argv)) return *code;
  for (auto& [command, action] : commands) {
    if (command->parsed()) return action();
  }
  return static_cast<int>(mjp::ExitCode::kUsage);
}

}  // namespace mjp::app
