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
  std::string notes;
  const auto add = [&notes](const std::string& note) {
    notes += (notes.empty() ? "" : "; ") + note;
  };
  if (row.required && !row.positional) add("required");
  if (!row.value.allowed.empty()) add(row.value.allowed);
  if (!row.standard.empty()) add("default: " + row.standard);
  if (notes.empty()) return row.description;
  return row.description + (row.description.empty() ? "(" : " (") + notes + ")";
}

}  // namespace mjp::app
