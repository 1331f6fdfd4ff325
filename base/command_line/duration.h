#ifndef BASE_COMMAND_LINE_DURATION_H_
#define BASE_COMMAND_LINE_DURATION_H_

#include <optional>
#include <string>

namespace mjp {

constexpr double kSecond = 1, kMillisecondInSeconds = 1e-3;

// Seconds of "100ms", "2s", "500us", "1.5min" or "1h", or of a number alone, which counts units of
// `unit` seconds. Nothing for any other text.
std::optional<double> ParseDuration(const std::string& text, double unit);

// "850 ms", "12 s", "3 min 20 s", "2 h 5 min": for people.
std::string DurationText(double seconds);

}  // namespace mjp

#endif  // BASE_COMMAND_LINE_DURATION_H_
