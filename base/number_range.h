#ifndef BASE_NUMBER_RANGE_H_
#define BASE_NUMBER_RANGE_H_

#include <CLI/CLI.hpp>
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

}  // namespace mjp::app

#endif  // BASE_NUMBER_RANGE_H_
