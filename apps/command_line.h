#ifndef APPS_COMMAND_LINE_H_
#define APPS_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>

namespace pusht {

// What a subcommand does once its options are parsed; returns the exit code.
using Action = std::function<int()>;

// Adds a subcommand with each of `adders` to `app`, parses the command line and runs the one that
// was named. Returns its exit code, or ExitCode::kUsage with a message.
int RunSubcommand(CLI::App& app, std::initializer_list<Action (*)(CLI::App&)> adders, int argc,
                  char** argv);

// Throws CLI::ValidationError for an option with an empty value: most often a variable of a script
// that was never set.
void RefuseEmptyValues(const CLI::App& command);

}  // namespace pusht

#endif  // APPS_COMMAND_LINE_H_
