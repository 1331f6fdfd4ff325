#include "tasks/pusht/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tasks/physics/random_state.h"

namespace mjp::app {
namespace {

constexpr double kPi = std::numbers::pi;

// An independent way to the same area: the corners of the intersection of two convex polygons are
// the corners of each inside the other and the crossings of their edges; sorted by direction
// about their mean they bound it.
struct Point {
  double x, y;
};
using Quad = std::vector<Point>;

double Cross(const Point& o, const Point& a, const Point& b) {
  return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

bool Inside(const Point& p, const Quad& q) {
  for (size_t i = 0; i < q.size(); ++i) {
    if (Cross(q[i], q[(i + 1) % q.size()], p) < 0) return false;
  }
  return true;
}

double ConvexIntersection(const Quad& a, const Quad& b) {
  Quad corners;
  for (const Point& p : a) {
    if (Inside(p, b)) corners.push_back(p);
  }
  for (const Point& p : b) {
    if (Inside(p, a)) corners.push_back(p);
  }
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      const Point &p = a[i], &q = a[(i + 1) % a.size()], &r = b[j], &s = b[(j + 1) % b.size()];
      const double d = (q.x - p.x) * (s.y - r.y) - (q.y - p.y) * (s.x - r.x);
      if (d == 0) continue;
      const double t = ((r.x - p.x) * (s.y - r.y) - (r.y - p.y) * (s.x - r.x)) / d;
      const double u = ((r.x - p.x) * (q.y - p.y) - (r.y - p.y) * (q.x - p.x)) / d;
      if (t < 0 || t > 1 || u < 0 || u > 1) continue;
      corners.push_back({p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)});
    }
  }
  if (corners.size() < 3) return 0;
  Point mean{0, 0};
  for (const Point& p : corners) {
    mean.x += p.x / corners.size();
    mean.y += p.y / corners.size();
  }
  std::sort(corners.begin(), corners.end(), [&](const Point& p, const Point& q) {
    return std::atan2(p.y - mean.y, p.x - mean.x) < std::atan2(q.y - mean.y, q.x - mean.x);
  });
  double area = 0;
  for (size_t i = 0; i < corners.size(); ++i) {
    area += Cross(mean, corners[i], corners[(i + 1) % corners.size()]) / 2;
  }
  return area;
}

std::vector<Quad> PlacedBlock(double x, double y, double angle) {
  const std::vector<Quad> parts = {{{-60, 0}, {60, 0}, {60, 30}, {-60, 30}},
                                   {{-15, 30}, {15, 30}, {15, 120}, {-15, 120}}};
  std::vector<Quad> placed;
  for (const Quad& part : parts) {
    Quad quad;
    for (const Point& p : part) {
      quad.push_back({x + std::cos(angle) * p.x - std::sin(angle) * p.y,
                      y + std::sin(angle) * p.x + std::cos(angle) * p.y});
    }
    placed.push_back(quad);
  }
  return placed;
}

double ReferenceCoverage(const State& s) {
  double area = 0;
  for (const Quad& a : PlacedBlock(s.block_x, s.block_y, s.block_angle)) {
    for (const Quad& b : PlacedBlock(256, 256, kPi / 4)) area += ConvexIntersection(a, b);
  }
  return area / 6300;
}

TEST(CoverageTest, ExactPlacements) {
  EXPECT_EQ(SharedArea(0, 0, 0), 6300);
  EXPECT_NEAR(SharedArea(0, 0, kPi / 2), 1800, 1e-10);
  EXPECT_NEAR(SharedArea(0, 60, kPi), 1800, 1e-10);
  EXPECT_EQ(SharedArea(0, 30, 0), 30 * 60 + 30 * 30);  // stem on stem, bar on stem
  EXPECT_EQ(SharedArea(120, 0, 0), 0);
  EXPECT_EQ(SharedArea(1e6, -1e6, 1), 0);
  EXPECT_EQ(Coverage({0, 0, 256, 256, kGoalAngle}), 1);
}

TEST(CoverageTest, EqualsAnIndependentIntersection) {
  RandomState random(1);
  double worst = 0;
  for (int i = 0; i < 40000; ++i) {
    // half the poses anywhere on the board, half close to the goal, where it counts
    const double range = i % 2 ? 200 : 2, turn = i % 2 ? kPi : 0.02;
    const State s{0, 0, 256 + range * (2 * random.RandomSample() - 1),
                  256 + range * (2 * random.RandomSample() - 1),
                  kPi / 4 + turn * (2 * random.RandomSample() - 1)};
    const double difference = std::abs(Coverage(s) - ReferenceCoverage(s));
    ASSERT_FALSE(std::isnan(difference));
    worst = std::max(worst, difference);
  }
  EXPECT_LE(worst * kBlockArea, 1e-9);
}

TEST(CoverageTest, TurnsDoNotMatter) {
  const State s{0, 0, 250, 262, 0.7};
  State turned = s;
  turned.block_angle += 6 * kPi;
  EXPECT_NEAR(Coverage(s), Coverage(turned), 1e-12);
}

TEST(CoverageTest, NotFiniteCoversNothing) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(Coverage({0, 0, bad, 256, 0}), 0);
    EXPECT_EQ(Coverage({0, 0, 256, bad, 0}), 0);
    EXPECT_EQ(Coverage({0, 0, 256, 256, bad}), 0);
  }
}

TEST(CoverageTest, ScoreIsClippedAndSuccessIsStrict) {
  EXPECT_EQ(Score(0), 0);
  EXPECT_EQ(Score(0.475), 0.5);
  EXPECT_EQ(Score(0.95), 1);
  EXPECT_EQ(Score(1), 1);
  EXPECT_FALSE(IsSuccess(0.95));
  EXPECT_TRUE(IsSuccess(std::nextafter(0.95, 1)));
  EXPECT_FALSE(IsSuccess(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace
}  // namespace mjp::app
