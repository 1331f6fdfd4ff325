#ifndef BASE_COMMAND_LINE_NUMBER_RANGE_H_
#define BASE_COMMAND_LINE_NUMBER_RANGE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "base/text_stream.h"

namespace mjp::app {

// An option's check: a number within low ... high. CLI::Range lets "nan" pass.
inline CLI::Validator NumberRange(double low, double high) {
  mjp::TextWriter range;
  range << "a number from " << low << " to " << high;
  const auto check = [low, high, what = range.str()](const std::string& text) {
    double value = 0;
    const bool inside = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
    return inside ? std::string() : "'" + text + "' is not " + what;
  };
  return CLI::Validator("[" + range.str().substr(2) + "]").operation(check);
}

// The check of a seed of `bits`: the conversion alone takes -1 for the largest one, or says of a
// seed that it cannot take no more than that.
inline CLI::Validator WholeSeed(int bits = 64) {
  const auto check = [bits](const std::string& text) {
    uint64_t value = 0;
    const bool whole = text.find('-') == text.npos && CLI::detail::lexical_cast(text, value) &&
                       (bits == 64 || value >> bits == 0);
    return whole ? std::string()
                 : "'" + text + "' is not a whole number from 0 to 2^" + std::to_string(bits) +
                       " - 1";
  };
  return CLI::Validator("").operation(check);
}

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_NUMBER_RANGE_H_
