#include "apps/command_line.h"

#include <utility>
#include <vector>

#include "base/error.h"

namespace mjp::app {

void RefuseEmptyValues(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) throw CLI::ValidationError(option->get_name(), "is empty");
    }
  }
}

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
    for (const CLI::App* command : app.get_subcommands()) RefuseEmptyValues(*command);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> rest = app.remaining();
    // CLI11 asks for a subcommand before it looks at what was given instead
    if (error.get_exit_code() != 0 && app.get_subcommands().empty() && !rest.empty()) {
      throw mjp::Error(mjp::ExitCode::kUsage,
                       "there is no command '" + rest.front() + "'; --help lists them");
    }
    return app.exit(error) == 0 ? 0 : static_cast<int>(mjp::ExitCode::kUsage);
  }
  for (auto& [command, action] : commands) {
    if (command->parsed()) return action();
  }
  return static_cast<int>(mjp::ExitCode::kUsage);
}

}  // namespace mjp::app
