#ifndef APPS_REPORT_CHARTS_H_
#define APPS_REPORT_CHARTS_H_

#include <string>
#include <utility>
#include <vector>

// Drawings of the report as SVG, whose colours the page's style sets.

namespace mjp::app {

// The colour of the evaluation `index`, a CSS value.
std::string SeriesColour(size_t index);

struct IntervalRow {
  std::string name;
  double value = 0, low = 0, high = 0;  // in [0, 1]
};

// A dot with its interval for each row, on one axis in percent.
std::string IntervalChart(const std::vector<IntervalRow>& rows);

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by x, y in [0, 1]
};

struct Axis {
  std::string title;
  double begin = 0, end = 1;
  int decimals = 0;  // of its numbers
};

// Shares in percent over `axis`, as stairs: a value holds until the next x.
std::string CurveChart(const std::vector<Curve>& curves, const Axis& axis,
                       const std::string& y_title);

struct BarRow {
  std::string name;
  double value = 0, mark = 0;  // the bar, and a tick beyond it; both >= 0
  std::string text;            // beside it
};

// Horizontal bars from 0.
std::string BarChart(const std::vector<BarRow>& rows, size_t colour, const std::string& title);

}  // namespace mjp::app

#endif  // APPS_REPORT_CHARTS_H_
