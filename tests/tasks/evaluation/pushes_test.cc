// When and how far the block is pushed, whatever the task.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tasks/evaluation/disturbances.h"

namespace mjp::app {
namespace {

TEST(PushesTest, AreSoManyOfTheSizeInTheFirstSteps) {
  constexpr double kSize = 40;
  double sum_x = 0;
  int early = 0, pushes = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    double length = 0;
    for (int tick = 0; tick < 300; ++tick) {
      const auto [x, y] = PushAt(kSize, 3, seed, tick);
      EXPECT_EQ(PushAt(kSize, 3, seed, tick), (std::array{x, y}));
      if (x == 0 && y == 0) continue;
      ASSERT_GE(tick, 1);
      ASSERT_LE(tick, kPushedSteps);
      length += std::hypot(x, y);
      sum_x += x;
      early += tick <= kPushedSteps / 2;
      ++pushes;
    }
    // two at one moment may add up to less
    EXPECT_LE(length, 3 * kSize + 1e-9) << seed;
    EXPECT_GT(length, 0) << seed;
  }
  // 3000 less those that meet; moments and directions are uniform
  EXPECT_NEAR(pushes, 2980, 20);
  EXPECT_NEAR(early, pushes / 2, 120);
  EXPECT_NEAR(sum_x / pushes, 0, 2.2);
}

TEST(PushesTest, WithoutACountComeEveryTwoSeconds) {
  for (int tick = 0; tick <= 300; ++tick) {
    const auto [x, y] = PushAt(20, 0, 7, tick);
    EXPECT_NEAR(std::hypot(x, y), tick > 0 && tick % 20 == 0 ? 20 : 0, 1e-9) << tick;
  }
}

}  // namespace
}  // namespace mjp::app
