#include "base/command_line/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace mjp {
namespace {

bool ShowsColours(std::FILE* stream) {
  const char* refused = std::getenv("NO_COLOR");
  if (refused && *refused) return false;
  const char* terminal = std::getenv("TERM");
  return ::isatty(::fileno(stream)) != 0 && terminal && std::string_view(terminal) != "dumb";
}

}  // namespace

std::string Coloured(std::FILE* stream, Colour colour, const std::string& text) {
  if (!ShowsColours(stream)) return text;
  const char* code = colour == Colour::kRed ? "31" : colour == Colour::kGreen ? "32" : "33";
  return std::string("\033[") + code + "m" + text + "\033[0m";
}

}  // namespace mjp
