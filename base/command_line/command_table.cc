#include "base/command_line/command_table.h"

#include <utility>

namespace mjp::app {
namespace {

// CLI11's names of types, and what people call them.
std::string TypeText(const std::string& type) {
  if (type == "INT" || type == "UINT") return "N";
  return type == "FLOAT" ? "X" : type;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// "INT in [1 - 1000]" and "[number from 1 to 1000]" -> "1 to 1000"
std::string AllowedText(std::string text) {
  if (const size_t at = text.find(" in ["); at != std::string::npos) {
    text = text.substr(at + 5, text.size() - at - 6);
    if (const size_t dash = text.find(" - "); dash != std::string::npos)
      text.replace(dash, 3, " to ");
    return text;
  }
  const std::string number = "[number from ";
  return text.starts_with(number) ? text.substr(number.size(), text.size() - number.size() - 1)
                                  : "";
}

CommandTable TableOf(const CLI::App& app) {
  CommandTable table = {app.get_name(), app.get_description(), app.get_footer(), {}};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) table.options.push_back(RowOf(*option));
  }
  return table;
}

}  // namespace

Metavar MetavarOf(const CLI::Option& option) {
  if (option.get_type_size() == 0) return {};
  // the type's name, then the description of each check, joined by colons
  std::vector<std::string> parts = Split(option.get_type_name(), ':');
  Metavar value = {TypeText(parts[0]), {}, ""};
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string& check = parts[i];
    if (check.starts_with('{')) {
      value.text = check;
      value.words = Split(check.substr(1, check.size() - 2), ',');
    } else {
      value.allowed = AllowedText(check);
    }
  }
  return value;
}

OptionRow RowOf(const CLI::Option& option) {
  OptionRow row;
  row.positional = option.get_positional();
  if (row.positional) {
    row.names.push_back(option.get_name(true, false));
  } else {
    for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  }
  row.value = MetavarOf(option);
  row.description = option.get_description();
  row.required = option.get_required();
  row.repeated = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  const std::string standard = option.get_default_str();
  // a list that is empty, or a text, says nothing of what happens
  if (!row.required && standard != "[]" && standard != "{}" && standard != "\"\"")
    row.standard = standard;
  return row;
}

std::vector<CommandTable> TablesOf(const CLI::App& program) {
  std::vector<CommandTable> tables = {TableOf(program)};
  for (const CLI::App* command : program.get_subcommands({})) tables.push_back(TableOf(*command));
  return tables;
}

}  // namespace mjp::app
