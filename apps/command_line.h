#ifndef APPS_COMMAND_LINE_H_
#define APPS_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>

namespace mjp::app {

// What a subcommand does once its options are parsed; returns the exit code.
using Action = std::function<int()>;

// Adds a subcommand with each of `adders` to `app`, parses the command line and runs the one that
// was named. Returns its exit code, or ExitCode::kUsage with a message.
int RunSubcommand(CLI::App& app, std::initializer_list<Action (*)(CLI::App&)> adders, int argc,
                  char** argv);

// Throws CLI::ValidationError for an option with an empty value: most often a variable of a script
// that was never set.
void RefuseEmptyValues(const CLI::App& command);

// An option that is one of `words`, each of which means a value.
template <class T>
void AddChoice(CLI::App& command, const char* name, const char* help,
               const std::map<std::string, T>& words, T& value) {
  const auto set = [&value, words](const std::string& word) { value = words.at(word); };
  command.add_option_function<std::string>(name, set, help)->check(CLI::IsMember(words));
}

}  // namespace mjp::app

#endif  // APPS_COMMAND_LINE_H_
