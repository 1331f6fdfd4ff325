#include "base/command_line/help_formatter.h"

#include "base/command_line/command_table.h"

namespace mjp::app {
namespace {

constexpr size_t kColumn = 34;  // where descriptions begin

}  // namespace

HelpFormatter::HelpFormatter() { column_width(kColumn); }

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const OptionRow row = RowOf(*option);
  return (row.value.text.empty() ? "" : " " + row.value.text) + (row.repeated ? " ..." : "");
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  const OptionRow row = RowOf(*option);
  std::string text = row.description;
  const auto add = [&text](const std::string& note) {
    text += (text.empty() ? "(" : " (") + note + ")";
  };
  if (row.required && !row.positional) add("required");
  if (!row.value.allowed.empty()) add(row.value.allowed);
  if (!row.standard.empty()) add("default: " + row.standard);
  return text;
}

}  // namespace mjp::app
