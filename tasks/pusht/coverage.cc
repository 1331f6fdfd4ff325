#include "tasks/pusht/coverage.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mjp::app {
namespace {

struct Point {
  double x, y;
};

struct Rectangle {
  double x0, y0, x1, y1;
};

// the block in its own frame: bar, stem
constexpr std::array<Rectangle, 2> kParts = {{{-60, 0, 60, 30}, {-15, 30, 15, 120}}};

// a convex polygon; a cut makes n corners at most 1.5 n, however they round: 4, 6, 9, 13, 19
struct Polygon {
  std::array<Point, 20> corners;
  int size = 0;
};

// Sutherland-Hodgman: keeps the side where `distance` (affine in the point) is not negative
template <typename Distance>
Polygon Clip(const Polygon& polygon, Distance distance) {
  Polygon kept;
  for (int i = 0; i < polygon.size; ++i) {
    const Point& a = polygon.corners[i];
    const Point& b = polygon.corners[(i + 1) % polygon.size];
    const double da = distance(a), db = distance(b);
    if (da >= 0) kept.corners[kept.size++] = a;
    if ((da > 0 && db < 0) || (da < 0 && db > 0)) {
      const double t = da / (da - db);
      kept.corners[kept.size++] = {a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)};
    }
  }
  return kept;
}

double Area(const Polygon& polygon) {
  double twice = 0;
  for (int i = 0; i < polygon.size; ++i) {
    const Point& a = polygon.corners[i];
    const Point& b = polygon.corners[(i + 1) % polygon.size];
    twice += a.x * b.y - b.x * a.y;
  }
  return twice / 2;
}

double ClippedArea(const Polygon& polygon, const Rectangle& r) {
  Polygon p = Clip(polygon, [&](const Point& c) { return c.x - r.x0; });
  p = Clip(p, [&](const Point& c) { return r.x1 - c.x; });
  p = Clip(p, [&](const Point& c) { return c.y - r.y0; });
  p = Clip(p, [&](const Point& c) { return r.y1 - c.y; });
  return Area(p);
}

}  // namespace

double SharedArea(double x, double y, double angle) {
  if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(angle)) return 0;
  const double c = std::cos(angle), s = std::sin(angle);
  const auto place = [&](double px, double py) {
    return Point{x + c * px - s * py, y + s * px + c * py};
  };
  double area = 0;
  for (const Rectangle& moved : kParts) {
    const Polygon polygon = {{place(moved.x0, moved.y0), place(moved.x1, moved.y0),
                              place(moved.x1, moved.y1), place(moved.x0, moved.y1)},
                             4};
    for (const Rectangle& fixed : kParts) area += ClippedArea(polygon, fixed);
  }
  return area;
}

double Coverage(const State& state, double goal_x, double goal_y, double goal_angle) {
  // the block as the goal sees it
  const double c = std::cos(goal_angle), s = std::sin(goal_angle);
  const double dx = state.block_x - goal_x, dy = state.block_y - goal_y;
  const double area = SharedArea(c * dx + s * dy, c * dy - s * dx, state.block_angle - goal_angle);
  return std::clamp(area / kBlockArea, 0.0, 1.0);
}

double Score(double coverage) { return std::clamp(coverage / kSuccessCoverage, 0.0, 1.0); }

}  // namespace mjp::app
