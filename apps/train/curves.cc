#include "apps/train/curves.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/folders.h"
#include "base/text_stream.h"
#include "tasks/recording/png.h"
#include "tasks/recording/video.h"

namespace mjp::app {
namespace {

using nlohmann::json;

constexpr int kWidth = 900, kPanelHeight = 270;
constexpr int kLeft = 80, kRight = 20, kTop = 40, kBottom = 30;
constexpr size_t kLogLimit = 256 << 20;  // bytes
constexpr Color kInk = {40, 40, 40}, kGrid = {225, 225, 225};
constexpr Color kBlue = {31, 119, 180}, kOrange = {255, 127, 14}, kBand = {174, 199, 232};

struct Point2 {
  double x = 0, y = 0;
};

// Lines of the log by step; the last of a step counts.
std::map<int64_t, json> ReadLines(const std::string& log, const char* key) {
  mjp::TextReader text(ReadFile(log, kLogLimit));
  std::map<int64_t, json> lines;
  for (std::string line; std::getline(text, line);) {
    const json value = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (value.is_object() && value.contains("step") && value.contains(key)) {
      lines[value["step"]] = value;
    }
  }
  return lines;
}

std::vector<Point2> Points(const std::map<int64_t, json>& lines, const std::string& key,
                           double factor = 1) {
  std::vector<Point2> points;
  points.reserve(lines.size());
  for (const auto& [step, line] : lines) {
    points.push_back({line["seconds"], factor * line[key].get<double>()});
  }
  return points;
}

// A rectangle of the picture with its axes.
class Panel {
 public:
  Panel(Picture& picture, int index, const std::string& title, Point2 low, Point2 high, bool log)
      : picture_(picture), top_(index * kPanelHeight + kTop), low_(low), high_(high), log_(log) {
    DrawText(picture_, title, kLeft, top_ - 26, 2, kInk);
    constexpr int kTicks = 5;
    for (int i = 0; i < kTicks; ++i) {
      const double part = static_cast<double>(i) / (kTicks - 1);
      const double x = low_.x + part * (high_.x - low_.x);
      const double y =
          log_ ? low_.y * std::pow(high_.y / low_.y, part) : low_.y + part * (high_.y - low_.y);
      FillRectangle(picture_, kLeft, Row(y), kWidth - kLeft - kRight, 1, kGrid);
      Label(y, kLeft - 72, Row(y) - 4);
      Label(x, Column(x) - 12, top_ + Height() + 8);
    }
  }

  void Line(const std::vector<Point2>& points, Color color) {
    for (size_t i = 1; i < points.size(); ++i) {
      const double dx = Column(points[i].x) - Column(points[i - 1].x);
      const double dy = Row(points[i].y) - Row(points[i - 1].y);
      const int dots = std::max(1, static_cast<int>(std::max(std::abs(dx), std::abs(dy))));
      for (int k = 0; k <= dots; ++k) {
        FillRectangle(picture_, Column(points[i - 1].x) + static_cast<int>(dx * k / dots),
                      Row(points[i - 1].y) + static_cast<int>(dy * k / dots), 2, 2, color);
      }
    }
  }

  void Bar(double x, double low, double high, Color color) {
    FillRectangle(picture_, Column(x) - 3, Row(high), 8, std::max(1, Row(low) - Row(high)), color);
  }

 private:
  static int Height() { return kPanelHeight - kTop - kBottom; }
  void Label(double value, int x, int y) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.4g", value);
    DrawText(picture_, text, x, y, 1, kInk);
  }
  int Column(double x) const {
    const double part = (x - low_.x) / std::max(high_.x - low_.x, 1e-12);
    return kLeft + static_cast<int>(part * (kWidth - kLeft - kRight));
  }
  int Row(double y) const {
    const double value = std::clamp(y, low_.y, high_.y);
    const double part = log_ ? std::log(value / low_.y) / std::log(high_.y / low_.y)
                             : (value - low_.y) / (high_.y - low_.y);
    return top_ + Height() - static_cast<int>(part * Height());
  }

  Picture& picture_;
  int top_;
  Point2 low_, high_;
  bool log_;
};

}  // namespace

void DrawCurves(const std::string& log, const std::string& picture) {
  const std::map<int64_t, json> steps = ReadLines(log, "loss"), rounds = ReadLines(log, "success");
  double end = 1;
  for (const auto* lines : {&steps, &rounds}) {
    if (!lines->empty()) end = std::max(end, lines->rbegin()->second["seconds"].get<double>());
  }
  Picture canvas(kWidth, 3 * kPanelHeight, 255);
  Panel losses(canvas, 0, "loss (blue: noise, orange: corners) over seconds", {0, 1e-4}, {end, 1},
               true);
  losses.Line(Points(steps, "corner_loss"), kOrange);
  losses.Line(Points(steps, "loss"), kBlue);

  Panel success(canvas, 1, "success of unseen starts, % (95 % interval)", {0, 0}, {end, 100},
                false);
  for (const auto& [step, line] : rounds) {
    success.Bar(line["seconds"], 100 * line["low"].get<double>(), 100 * line["high"].get<double>(),
                kBand);
  }
  success.Line(Points(rounds, "success", 100), kBlue);

  Panel duration(canvas, 2, "median control steps to success", {0, 40}, {end, 200}, false);
  duration.Line(Points(rounds, "median_steps"), kBlue);
  WritePng(picture, canvas);
}

}  // namespace mjp::app
