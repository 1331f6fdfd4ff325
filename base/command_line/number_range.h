#ifndef BASE_COMMAND_LINE_NUMBER_RANGE_H_
#define BASE_COMMAND_LINE_NUMBER_RANGE_H_

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

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

// The number of decimal digits, after a minus where T has a sign. Nothing for any other text, and
// for a number that T does not hold.
template <typename T>
std::optional<T> DecimalNumber(const std::string& text) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end ? std::optional(value) : std::nullopt;
}

// The check of a seed of `bits`: the conversion alone says of a seed that it cannot take no more
// than that.
inline CLI::Validator WholeSeed(int bits = 64) {
  const auto check = [bits](const std::string& text) {
    const auto value = DecimalNumber<uint64_t>(text);
    const bool whole = value && (bits == 64 || *value >> bits == 0);
    return whole ? std::string()
                 : "'" + text + "' is not a whole number from 0 to 2^" + std::to_string(bits) +
                       " - 1";
  };
  return CLI::Validator("").operation(check);
}

// For CLI::Option::transform, of an option whose type T has 64 bits or fewer: a whole number in
// decimal digits. CLI11's conversion reads 010 as 8, 0x8 too, and takes the last number that 64
// bits hold for every one beyond. A minus that an unsigned T has not is left to the option's
// checks, which say its range.
template <typename T>
CLI::Validator WholeNumber() {
  const auto change = [](std::string& text) {
    if (const auto value = DecimalNumber<T>(text)) {
      text = std::to_string(*value);
    } else if (const auto negative = DecimalNumber<int64_t>(text)) {
      text = std::to_string(*negative);
    } else {
      return "'" + text + "' is not a whole number from " +
             (std::is_signed_v<T> ? "-2^63 to 2^63 - 1" : "0 to 2^64 - 1");
    }
    return std::string();
  };
  return CLI::Validator("").operation(change);
}

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_NUMBER_RANGE_H_
