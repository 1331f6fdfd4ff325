#ifndef BASE_COMMAND_LINE_TERMINAL_H_
#define BASE_COMMAND_LINE_TERMINAL_H_

#include <cstdio>
#include <string>

namespace mjp {

enum class Colour { kRed, kGreen, kYellow };

// `text` in a colour where `stream` is a terminal that shows colours, as it is elsewhere. The
// variable NO_COLOR, not empty, turns colours off (no-color.org); so does TERM=dumb.
std::string Coloured(std::FILE* stream, Colour colour, const std::string& text);

}  // namespace mjp

#endif  // BASE_COMMAND_LINE_TERMINAL_H_
