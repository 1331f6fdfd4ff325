#include "apps/report/charts.h"

#include <algorithm>

#include "apps/report/html.h"

namespace mjp::app {
namespace {

constexpr size_t kColours = 6;
constexpr double kWidth = 560, kRow = 34;

std::string Px(double value) { return Fixed(value, 1); }

std::string Line(const char* kind, double x0, double y0, double x1, double y1) {
  return "<line class=\"" + std::string(kind) + "\" x1=\"" + Px(x0) + "\" y1=\"" + Px(y0) +
         "\" x2=\"" + Px(x1) + "\" y2=\"" + Px(y1) + "\"/>";
}

std::string Label(double x, double y, const char* anchor, const std::string& text,
                  const char* kind = "") {
  return "<text class=\"" + std::string(kind) + "\" x=\"" + Px(x) + "\" y=\"" + Px(y) +
         "\" text-anchor=\"" + anchor + "\">" + Escaped(text) + "</text>";
}

std::string Svg(double height, const std::string& title, const std::string& inside) {
  return "<svg viewBox=\"0 0 " + Px(kWidth) + " " + Px(height) + "\" role=\"img\" aria-label=\"" +
         Escaped(title) + "\">" + inside + "</svg>";
}

// A name that fits its column; the whole one is shown under the pointer.
std::string Name(double y, const std::string& name, size_t most) {
  const bool fits = name.size() <= most;
  const std::string shown = fits ? name : name.substr(0, most - 1) + "\u2026";
  return "<g><title>" + Escaped(name) + "</title>" + Label(0, y, "start", shown) + "</g>";
}

}  // namespace

std::string SeriesColour(size_t index) {
  return "var(--s" + std::to_string(index % kColours) + ")";
}

std::string IntervalChart(const std::vector<IntervalRow>& rows) {
  constexpr double kLeft = 130, kRight = kWidth - 84;
  double least = 1;
  for (const IntervalRow& row : rows) least = std::min(least, row.low);
  const double begin = least > 0.8 ? 0.8 : least > 0.5 ? 0.5 : 0;
  const auto x = [&](double value) {
    return kLeft + (kRight - kLeft) * (value - begin) / (1 - begin);
  };
  const double height = kRow * static_cast<double>(rows.size()) + 26;
  std::string inside;
  for (int i = 0; i <= 5; ++i) {
    const double value = begin + (1 - begin) * i / 5;
    inside += Line("grid", x(value), 0, x(value), height - 24) +
              Label(x(value), height - 6, "middle", Fixed(100 * value, 0) + " %");
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const IntervalRow& row = rows[i];
    const double y = kRow * (static_cast<double>(i) + 0.5);
    const std::string colour = SeriesColour(i);
    inside += Name(y + 5, row.name, 14) + "<g><title>" + Escaped(row.name) + ": " +
              Fixed(100 * row.value, 2) + " %, 95 % interval " + Fixed(100 * row.low, 2) + " to " +
              Fixed(100 * row.high, 2) + "</title><line x1=\"" + Px(x(row.low)) + "\" x2=\"" +
              Px(x(row.high)) + "\" y1=\"" + Px(y) + "\" y2=\"" + Px(y) +
              "\" style=\"stroke:" + colour +
              ";stroke-width:4;stroke-linecap:round;opacity:.45\"/>"
              "<circle cx=\"" +
              Px(x(row.value)) + "\" cy=\"" + Px(y) + "\" r=\"6\" style=\"fill:" + colour +
              "\"/></g>" + Label(kWidth, y + 5, "end", Fixed(100 * row.value, 1) + " %", "value");
  }
  return Svg(height, "Success with 95 % intervals", inside);
}

std::string CurveChart(const std::vector<Curve>& curves, const Axis& axis,
                       const std::string& y_title) {
  constexpr double kLeft = 46, kRight = kWidth - 14, kTop = 10, kBottom = 230, kHeight = 272;
  const auto x = [&](double value) {
    const double share = (value - axis.begin) / (axis.end - axis.begin);
    return kLeft + (kRight - kLeft) * std::clamp(share, 0.0, 1.0);
  };
  const auto y = [&](double value) { return kBottom - (kBottom - kTop) * value; };
  std::string inside;
  for (int i = 0; i <= 4; ++i) {
    const double share = i / 4.0, at = axis.begin + (axis.end - axis.begin) * share;
    inside += Line("grid", kLeft, y(share), kRight, y(share)) +
              Label(kLeft - 8, y(share) + 5, "end", Fixed(100 * share, 0)) +
              Label(x(at), kBottom + 19,
                    i == 0   ? "start"
                    : i == 4 ? "end"
                             : "middle",
                    Fixed(at, axis.decimals));
  }
  inside += Line("axis", kLeft, kBottom, kRight, kBottom) +
            Label((kLeft + kRight) / 2, kHeight - 5, "middle", axis.title);
  for (size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    if (curve.points.empty()) continue;
    std::string path = "M" + Px(x(axis.begin)) + " " + Px(y(curve.points.front().second));
    for (const auto& [at, value] : curve.points) path += "H" + Px(x(at)) + "V" + Px(y(value));
    path += "H" + Px(kRight);
    inside += "<path d=\"" + path + "\" style=\"fill:none;stroke:" + SeriesColour(i) +
              ";stroke-width:2.5;stroke-linejoin:round\"><title>" + Escaped(curve.name) +
              "</title></path>";
  }
  return Svg(kHeight, y_title + " by " + axis.title, inside);
}

std::string BarChart(const std::vector<BarRow>& rows, size_t colour, const std::string& title) {
  constexpr double kLeft = 110, kRight = kWidth - 150, kBar = 16;
  double most = 1e-9;
  for (const BarRow& row : rows) most = std::max({most, row.value, row.mark});
  const auto x = [&](double value) { return kLeft + (kRight - kLeft) * value / most; };
  std::string inside;
  for (size_t i = 0; i < rows.size(); ++i) {
    const BarRow& row = rows[i];
    const double y = kRow * (static_cast<double>(i) + 0.5);
    inside += Name(y + 5, row.name, 14) + "<rect x=\"" + Px(kLeft) + "\" y=\"" + Px(y - kBar / 2) +
              "\" width=\"" + Px(std::max(1.0, x(row.value) - kLeft)) + "\" height=\"" + Px(kBar) +
              "\" rx=\"3\" style=\"fill:" + SeriesColour(colour) + "\"/>" +
              Line("axis", x(row.mark), y - kBar / 2, x(row.mark), y + kBar / 2) +
              Label(kWidth, y + 5, "end", row.text, "value");
  }
  return Svg(kRow * static_cast<double>(rows.size()), title, inside);
}

}  // namespace mjp::app
