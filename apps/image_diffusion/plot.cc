#include "apps/image_diffusion/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/folders.h"

namespace mjp::app {
namespace {

std::string Text(double x, double y, int size, const std::string& text) {
  char tag[160];
  std::snprintf(tag, sizeof tag, "<text x=\"%.0f\" y=\"%.0f\" font-size=\"%d\">", x, y, size);
  return tag + text + "</text>\n";
}

}  // namespace

void WriteBars(const std::string& path, const std::string& title,
               const std::vector<BarGroup>& groups) {
  constexpr double kLeft = 190, kWidth = 420, kRow = 18, kTop = 34;
  const char* colors[] = {"#9aa0a6", "#5f6368", "#80868b", "#34a853",
                          "#1a73e8", "#fbbc04", "#ea4335"};
  double least = 1e300, most = 0;
  size_t rows = 0;
  for (const BarGroup& group : groups) {
    rows += group.bars.size() + 2;
    for (const Bar& bar : group.bars) {
      least = std::min(least, bar.value);
      most = std::max(most, bar.value);
    }
  }
  const double low = std::floor(std::log10(least)), high = std::log10(most) + 0.01;
  const double height = kTop + kRow * static_cast<double>(rows);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"700\" height=\"" +
                    std::to_string(static_cast<int>(height)) +
                    "\" font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" "
                    "fill=\"white\"/>\n" +
                    Text(10, 20, 15, title + " (logarithmic)");
  double y = kTop;
  for (const BarGroup& group : groups) {
    svg += Text(10, y + kRow * 0.8, 13, group.title);
    y += kRow;
    for (size_t i = 0; i < group.bars.size(); ++i, y += kRow) {
      const Bar& bar = group.bars[i];
      const double length = kWidth * (std::log10(bar.value) - low) / (high - low);
      char line[256];
      std::snprintf(line, sizeof line,
                    "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"%.0f\" fill=\"%s\"/>\n",
                    kLeft, y + 2, std::max(length, 1.0), kRow - 4, colors[i % std::size(colors)]);
      svg += line;
      std::snprintf(line, sizeof line, bar.value < 100 ? "%.3g" : "%.0f", bar.value);
      svg += Text(20, y + kRow * 0.75, 11, bar.name);
      svg += Text(kLeft + std::max(length, 1.0) + 5, y + kRow * 0.75, 11, line);
    }
    y += kRow;
  }
  WriteFileAtomically(path, svg + "</svg>\n");
}

}  // namespace mjp::app
