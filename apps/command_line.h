#ifndef APPS_COMMAND_LINE_H_
#define APPS_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "base/command_line/suggest.h"
#include "base/command_line/time_option.h"

namespace mjp::app {

// What a subcommand does once its options are parsed; returns the exit code.
using Action = std::function<int()>;

// Adds a subcommand with each of `adders` to `app`, parses the command line and runs the one that
// was named. Returns its exit code. Throws Error(kUsage) for a wrong command line.
int RunSubcommand(CLI::App& app, std::initializer_list<Action (*)(CLI::App&)> adders, int argc,
                  char** argv);

// An option that is one of `words`, each of which means a value; the help shows the word of what
// `value` is as the default.
template <class T>
void AddChoice(CLI::App& command, const char* name, const char* help,
               const std::map<std::string, T>& words, T& value) {
  const auto set = [&value, words](const std::string& word) { value = words.at(word); };
  std::vector<std::string> names;
  std::string standard;
  for (const auto& [word, meaning] : words) {
    names.push_back(word);
    if (meaning == value) standard = word;
  }
  command.add_option_function<std::string>(name, set, help)
      ->type_name("")
      ->check(OneOf(names))
      ->default_str(standard);
}

}  // namespace mjp::app

#endif  // APPS_COMMAND_LINE_H_
