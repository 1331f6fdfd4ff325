#include "base/command_line/man_page.h"

#include <algorithm>
#include <cctype>

#include "base/command_line/command_table.h"

namespace mjp::app {
namespace {

// Text as roff reads it: no line is a request, a dash is one that can be copied.
std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '-' || c == '\\') out += c == '-' ? "\\" : "\\e";
    if (c != '\\') out += c;
  }
  return out;
}

std::string OptionText(const OptionRow& row) {
  std::string text = ".TP\n\\fB";
  for (const std::string& name : row.names) {
    text += (name == row.names.front() ? "" : "\\fR, \\fB") + Escaped(name);
  }
  text += "\\fR";
  if (!row.value.text.empty() && !row.positional)
    text += " \\fI" + Escaped(row.value.text) + "\\fR";
  if (row.repeated) text += " ...";
  text += "\n" + Escaped(row.description.empty() ? row.names.front() : row.description);
  if (row.required && !row.positional) text += " (required)";
  if (!row.value.allowed.empty()) text += " (" + Escaped(row.value.allowed) + ")";
  if (!row.standard.empty()) text += " (default: " + Escaped(row.standard) + ")";
  return text + "\n";
}

std::string CommandText(const CommandTable& table) {
  std::string text;
  for (const OptionRow& row : table.options) text += OptionText(row);
  if (!table.footer.empty()) text += ".PP\n.nf\n" + Escaped(table.footer) + "\n.fi\n";
  return text;
}

}  // namespace

std::string ManPage(const CLI::App& program, const std::string& version) {
  const std::vector<CommandTable> tables = TablesOf(program);
  const CommandTable& own = tables.front();
  std::string title = own.name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string text = ".TH " + Escaped(title) + " 1 \"\" \"" + Escaped(version) +
                     "\" \"\"\n.SH NAME\n" + Escaped(own.name) + " \\- " +
                     Escaped(own.description) + "\n.SH SYNOPSIS\n\\fB" + Escaped(own.name) +
                     "\\fR " + (tables.size() > 1 ? "\\fICOMMAND\\fR " : "") +
                     "[\\fIOPTIONS\\fR]\n.SH OPTIONS\n" + CommandText(own);
  if (tables.size() > 1) text += ".SH COMMANDS\n";
  for (size_t i = 1; i < tables.size(); ++i) {
    text += ".SS " + Escaped(own.name + " " + tables[i].name) + "\n" +
            Escaped(tables[i].description) + ".\n" + CommandText(tables[i]);
  }
  return text;
}

}  // namespace mjp::app
