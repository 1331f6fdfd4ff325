#ifndef BASE_COMMAND_LINE_PARSE_H_
#define BASE_COMMAND_LINE_PARSE_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace mjp::app {

// Adds what every program of the project has: --help, --version, --completion SHELL, --man, help
// that shows defaults. Before its commands and options, which inherit it. `version` is what
// --version prints; its first line is the program's name and version.
void AddCommonOptions(CLI::App& app, const std::string& version);

// Parses the command line, whose whole numbers are decimal. Returns the exit code where there is
// nothing else to do: help, version, completion and manual were asked for. Throws Error(kUsage) for
// a wrong one; what is misspelt is named first, with the word that was probably meant.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv);

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_PARSE_H_
