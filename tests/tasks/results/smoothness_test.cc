#include "tasks/results/smoothness.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace mjp::app {
namespace {

TEST(SmoothnessTest, OfAPathOfTheThirdDegreeIsItsThirdDerivative) {
  SmoothnessMeter meter;
  for (int t = 0; t < 20; ++t) meter.Add(std::array{0.5 * t * t * t, 7.0}, false);
  EXPECT_NEAR(meter.Value().jerk, 0.5 * 6, 1e-9);
  EXPECT_EQ(meter.Value().border_jump, 0);
}

TEST(SmoothnessTest, JumpsCountWhereAChunkBegins) {
  SmoothnessMeter meter;
  // steady, then off by (3, 4) at the ninth action, and steady again
  for (int t = 0; t < 16; ++t) {
    const bool off = t >= 8;
    meter.Add(std::array{2.0 * t + (off ? 3 : 0), (off ? 4.0 : 0.0)}, t % 8 == 0);
  }
  EXPECT_NEAR(meter.Value().border_jump, 5, 1e-12);
  // third differences 5, 10 and 5 of 13
  EXPECT_NEAR(meter.Value().jerk, 20.0 / 13, 1e-12);
}

TEST(SmoothnessTest, OfTooFewActionsIsZero) {
  SmoothnessMeter meter;
  for (const double x : {1.0, 5.0, -3.0}) {
    EXPECT_EQ(meter.Value().jerk, 0);
    EXPECT_EQ(meter.Value().border_jump, 0);
    meter.Add(std::array{x}, false);
  }
  EXPECT_EQ(meter.Value().jerk, 0);
  meter.Add(std::array{0.0}, true);
  EXPECT_NEAR(meter.Value().jerk, std::abs(0 - 3 * -3 + 3 * 5 - 1), 1e-12);
  EXPECT_NEAR(meter.Value().border_jump, std::abs(0 - 2 * -3 + 5), 1e-12);
}

}  // namespace
}  // namespace mjp::app
