#include "tasks/pusht/physics/chipmunk_oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/npy.h"
#include "tasks/pusht/physics/reset.h"
#include "tests/support/shared_data.h"

namespace mjp::app {
namespace {

TEST(ChipmunkOracleTest, ReproducesTheRecordedPhysics) {
  SHARED_OR_SKIP(actions, "pusht/human_action.npy");
  SHARED_OR_SKIP(ends_file, "pusht/human_episode_ends.npy");
  SHARED_OR_SKIP(golden_file, "pusht/golden_replay.npy");
  const std::vector<double> a = ReadNpy(actions).ToDoubles(), g = ReadNpy(golden_file).ToDoubles();
  const std::vector<int64_t> ends = ReadNpy(ends_file).ToIntegers("ends");
  ChipmunkOracle oracle;
  double worst = 0;
  int64_t begin = 0;
  for (int e = 0; e < 150; ++e) {
    oracle.Reset(BenchmarkStart(e));
    for (int64_t i = begin; i <= ends[e]; ++i) {
      const State s = oracle.Read();
      const double* row = &g[5 * (i + e)];
      const double v[5] = {s.agent_x, s.agent_y, s.block_x, s.block_y, s.block_angle};
      for (int k = 0; k < 5; ++k) {
        ASSERT_FALSE(std::isnan(v[k]));
        worst = std::max(worst, std::abs(v[k] - row[k]));
      }
      if (i < ends[e]) oracle.Step(a[2 * i], a[2 * i + 1]);
    }
    begin = ends[e];
  }
  EXPECT_LE(worst, 1e-9);
}

TEST(ChipmunkOracleTest, TheAgentFollowsItsServoExactly) {
  // far from the block the agent is a critically damped oscillator in semi-implicit Euler steps
  ChipmunkOracle oracle;
  oracle.Reset({100, 100, 400, 300, 0});
  double x = 100, v = 0;
  for (int t = 0; t < 20; ++t) {
    oracle.Step(160, 100);
    for (int k = 0; k < kSubsteps; ++k) {
      v += kTimestep * (100 * (160 - x) - 20 * v);
      x += kTimestep * v;
    }
    EXPECT_NEAR(oracle.Read().agent_x, x, 1e-10);
    EXPECT_EQ(oracle.Read().agent_y, 100);
    EXPECT_EQ(oracle.Read().block_x, 400);
  }
}

TEST(ChipmunkOracleTest, AnEpisodeLeavesNoTrace) {
  ChipmunkOracle used, fresh;
  used.Reset(BenchmarkStart(1));
  for (int t = 0; t < 50; ++t) used.Step(256, 256);
  used.Reset(BenchmarkStart(2));
  fresh.Reset(BenchmarkStart(2));
  for (int t = 0; t < 50; ++t) {
    used.Step(256, 256);
    fresh.Step(256, 256);
  }
  EXPECT_EQ(used.Read().block_x, fresh.Read().block_x);
  EXPECT_EQ(used.Read().block_y, fresh.Read().block_y);
  EXPECT_EQ(used.Read().block_angle, fresh.Read().block_angle);
}

}  // namespace
}  // namespace mjp::app
