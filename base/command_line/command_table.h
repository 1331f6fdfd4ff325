#ifndef BASE_COMMAND_LINE_COMMAND_TABLE_H_
#define BASE_COMMAND_LINE_COMMAND_TABLE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace mjp::app {

// What the value of an option stands for, as help, completion and manual show it.
struct Metavar {
  std::string text;                // "DIR", "FILE", "N", "{ddpm,ddim}"; empty for a flag
  std::vector<std::string> words;  // where it is one of some
  std::string allowed;             // "1 to 1000"; empty where anything is
};

// An option or a positional argument.
struct OptionRow {
  std::vector<std::string> names;  // "--out"; a positional one has its name without dashes
  Metavar value;
  std::string description;
  std::string standard;  // what holds without it; empty: nothing, or the description says it
  bool positional = false, required = false, repeated = false;
};

// A command of a program, or a program without commands.
struct CommandTable {
  std::string name, description, footer;
  std::vector<OptionRow> options;
};

Metavar MetavarOf(const CLI::Option& option);
OptionRow RowOf(const CLI::Option& option);

// The program itself first, then each of its commands in the order of the help.
std::vector<CommandTable> TablesOf(const CLI::App& program);

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_COMMAND_TABLE_H_
