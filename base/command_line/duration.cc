#include "base/command_line/duration.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace mjp {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr Unit kUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};

}  // namespace

std::optional<double> ParseDuration(const std::string& text, double unit) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  std::string_view suffix(rest, static_cast<size_t>(end - rest));
  if (suffix.starts_with(' ')) suffix.remove_prefix(1);
  if (suffix.empty()) return rest == end ? std::optional(number * unit) : std::nullopt;
  for (const Unit& known : kUnits) {
    if (suffix == known.name) return number * known.seconds;
  }
  return std::nullopt;
}

std::string DurationText(double seconds) {
  char text[64];
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (seconds < 1) {
    std::snprintf(text, sizeof(text), "%lld ms", std::llround(1000 * seconds));
  } else if (whole < 60) {
    std::snprintf(text, sizeof(text), "%lld s", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof(text), "%lld min %lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof(text), "%lld h %lld min", whole / 3600, whole % 3600 / 60);
  }
  return text;
}

}  // namespace mjp
