#ifndef BASE_COMMAND_LINE_TIME_OPTION_H_
#define BASE_COMMAND_LINE_TIME_OPTION_H_

#include <CLI/CLI.hpp>
#include <string>

#include "base/command_line/duration.h"
#include "base/text_stream.h"

namespace mjp::app {

// For CLI::Option::transform: a time of `low` ... `high` units. A number alone counts units of
// `unit` seconds; with a suffix (us, ms, s, min, h) it is a time.
inline CLI::Validator TimeIn(double unit, double low, double high) {
  mjp::TextWriter range;
  range << "number from " << low << " to " << high;
  const auto change = [unit, low, high, what = range.str()](std::string& text) {
    const auto seconds = mjp::ParseDuration(text, unit);
    if (!seconds || *seconds / unit < low || *seconds / unit > high) {
      return "'" + text + "' is not a " + what + ", or a time such as 100ms, 2s or 5min";
    }
    mjp::TextWriter units;
    units.precision(15);
    units << *seconds / unit;
    text = units.str();
    return std::string();
  };
  return CLI::Validator("[" + range.str() + "]").operation(change);
}

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_TIME_OPTION_H_
