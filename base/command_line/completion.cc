#include "base/command_line/completion.h"

#include <algorithm>

#include "base/command_line/command_table.h"

namespace mjp::app {
namespace {

std::string Joined(const std::vector<std::string>& words, const char* separator = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// In single quotes, for any of the shells.
std::string Quoted(const std::string& text) { return "'" + Replaced(text, "'", "'\\''") + "'"; }

// A function's name: "_mjpolicy_viewer".
std::string Function(const std::string& program) { return "_" + Replaced(program, "-", "_"); }

bool IsFolder(const OptionRow& row) { return row.value.text == "DIR"; }
bool IsFile(const OptionRow& row) { return row.value.text == "FILE" || row.value.text == "PATH"; }

// The cases of a command: after an option its values, else the options themselves.
std::string BashCases(const CommandTable& table) {
  std::string text, options;
  bool files = false, folders = false;
  for (const OptionRow& row : table.options) {
    const std::string compgen = !row.value.words.empty() ? "-W " + Quoted(Joined(row.value.words))
                                : IsFolder(row)          ? "-d"
                                : IsFile(row)            ? "-f"
                                                         : "-W ''";
    if (row.positional) {
      (IsFolder(row) ? folders : files) = true;
      if (!row.value.words.empty()) options += " " + Joined(row.value.words);
      continue;
    }
    options += " " + Joined(row.names);
    if (row.value.text.empty()) continue;
    text += "      " + Joined(row.names, "|") + ") COMPREPLY=($(compgen " + compgen +
            " -- \"$cur\")); return ;;\n";
  }
  const std::string paths = files ? " -f" : folders ? " -d" : "";
  return "      case \"$prev\" in\n" + text + "      esac\n      COMPREPLY=($(compgen" + paths +
         " -W " + Quoted(options) + " -- \"$cur\")) ;;\n";
}

std::string Bash(const std::vector<CommandTable>& tables) {
  const CommandTable& own = tables.front();
  std::vector<std::string> commands;
  for (size_t i = 1; i < tables.size(); ++i) commands.push_back(tables[i].name);
  std::string text =
      "# bash completion of " + own.name + "\n" + Function(own.name) +
      "() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  COMPREPLY=()\n  local command=" +
      (commands.empty() ? "" : "${COMP_WORDS[1]}") +
      "\n  if [ \"$COMP_CWORD\" -lt 2 ]; then command=; fi\n  case \"$command\" in\n";
  for (size_t i = 1; i < tables.size(); ++i) {
    text += "    " + tables[i].name + ")\n" + BashCases(tables[i]);
  }
  CommandTable first = own;
  if (!commands.empty()) first.options.push_back({{"COMMAND"}, {"", commands, ""}, "", "", true});
  text += "    *)\n" + BashCases(first) + "  esac\n}\ncomplete -o filenames -F " +
          Function(own.name) + " " + own.name + "\n";
  return text;
}

// One argument of zsh's _arguments.
std::string ZshArgument(const OptionRow& row) {
  const auto plain = [](const std::string& text) {
    return Replaced(Replaced(Replaced(text, "[", "("), "]", ")"), ":", " -");
  };
  const std::string action = !row.value.words.empty()        ? "(" + Joined(row.value.words) + ")"
                             : IsFolder(row)                 ? "_files -/"
                             : IsFile(row) || row.positional ? "_files"
                                                             : "";
  std::string text;
  if (row.positional) {
    return "    " +
           Quoted(std::string(row.repeated ? "*:" : ":") + plain(row.names.front()) + ":" + action);
  }
  for (const std::string& name : row.names) {
    std::string spec = name + "[" + plain(row.description) + "]";
    if (!row.value.text.empty())
      spec += ":" + plain(Joined({Replaced(row.value.text, ":", " ")})) + ":" + action;
    text += (text.empty() ? "    " : " \\\n    ") + Quoted(spec);
  }
  return text;
}

std::string ZshArguments(const CommandTable& table) {
  std::string text = "_arguments -s";
  for (const OptionRow& row : table.options) text += " \\\n" + ZshArgument(row);
  return text + "\n";
}

std::string Zsh(const std::vector<CommandTable>& tables) {
  const CommandTable& own = tables.front();
  std::string text = "#compdef " + own.name + "\n" + Function(own.name) + "() {\n";
  if (tables.size() == 1)
    return text + "  " + ZshArguments(own) + "}\ncompdef " + Function(own.name) + " " + own.name +
           "\n";
  text += "  if (( CURRENT == 2 )); then\n    local -a commands=(\n";
  for (size_t i = 1; i < tables.size(); ++i) {
    text +=
        "      " + Quoted(tables[i].name + ":" + Replaced(tables[i].description, ":", " -")) + "\n";
  }
  text += "    )\n    _describe command commands\n    " + ZshArguments(own) +
          "    return\n  fi\n  local command=${words[2]}\n  shift words\n  (( CURRENT-- ))\n"
          "  case $command in\n";
  for (size_t i = 1; i < tables.size(); ++i) {
    text += "    " + tables[i].name + ") " + ZshArguments(tables[i]) + "    ;;\n";
  }
  return text + "  esac\n}\ncompdef " + Function(own.name) + " " + own.name + "\n";
}

std::string FishOption(const std::string& start, const OptionRow& row) {
  std::string text = start;
  for (const std::string& name : row.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!row.value.text.empty()) text += IsFolder(row) || IsFile(row) ? " -r -F" : " -x";
  if (!row.value.words.empty()) text += " -a " + Quoted(Joined(row.value.words));
  return text + " -d " + Quoted(row.description) + "\n";
}

std::string Fish(const std::vector<CommandTable>& tables) {
  const CommandTable& own = tables.front();
  const std::string start = "complete -c " + own.name;
  std::string text = "# fish completion of " + own.name + "\n";
  const bool commands = tables.size() > 1;
  if (commands) text += start + " -f -n __fish_use_subcommand\n";
  for (const OptionRow& row : own.options) {
    if (!row.positional)
      text += FishOption(start + (commands ? " -n __fish_use_subcommand" : ""), row);
  }
  for (size_t i = 1; i < tables.size(); ++i) {
    text += start + " -n __fish_use_subcommand -a " + tables[i].name + " -d " +
            Quoted(tables[i].description) + "\n";
    const std::string within = start + " -n '__fish_seen_subcommand_from " + tables[i].name + "'";
    for (const OptionRow& row : tables[i].options) {
      if (!row.positional) {
        text += FishOption(within, row);
      } else if (!row.value.words.empty()) {
        text += within + " -f -a " + Quoted(Joined(row.value.words)) + "\n";
      }
    }
  }
  return text;
}

}  // namespace

const std::vector<std::string>& CompletionShells() {
  static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return shells;
}

std::string CompletionScript(const CLI::App& program, const std::string& shell) {
  const std::vector<CommandTable> tables = TablesOf(program);
  if (shell == "bash") return Bash(tables);
  return shell == "zsh" ? Zsh(tables) : Fish(tables);
}

}  // namespace mjp::app
