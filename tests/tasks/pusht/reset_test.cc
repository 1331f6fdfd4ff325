#include "tasks/pusht/physics/reset.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tests/support/shared_data.h"

// Expected numbers: NumPy 2.4.6, numpy.random.RandomState.

namespace mjp::app {
namespace {

struct Start {
  uint32_t seed;
  double agent_x, agent_y, block_x, block_y, angle;
};

class BenchmarkDrawTest : public ::testing::TestWithParam<Start> {};

TEST_P(BenchmarkDrawTest, IsNumPys) {
  const Start& expected = GetParam();
  const State draw = BenchmarkDraw(expected.seed);
  EXPECT_EQ(draw.agent_x, expected.agent_x);
  EXPECT_EQ(draw.agent_y, expected.agent_y);
  EXPECT_EQ(draw.block_x, expected.block_x);
  EXPECT_EQ(draw.block_y, expected.block_y);
  EXPECT_EQ(draw.block_angle, expected.angle);
}

INSTANTIATE_TEST_SUITE_P(
    Seeds, BenchmarkDrawTest,
    ::testing::Values(Start{0, 222, 97, 217, 292, 0x1.8106206620278p+1},
                      Start{1, 87, 285, 172, 355, -0x1.a620c392ecafep+2},
                      Start{2, 218, 65, 172, 122, -0x1.a44581555b976p+1},
                      Start{205, 372, 342, 338, 256, -0x1.f240666474c8cp+1},
                      Start{100000, 235, 124, 335, 128, -0x1.cf52a5dcad470p-1},
                      Start{100001, 365, 182, 275, 280, -0x1.191df1565cb48p+0},
                      Start{2147483648u, 332, 54, 373, 135, -0x1.b96c6adbbea71p+0},
                      Start{4294967295u, 340, 62, 171, 164, -0x1.50bc4e50d6b86p+1}),
    [](const auto& info) { return std::to_string(info.param.seed); });

TEST(BenchmarkDrawTest, HundredPublishedStartsHashAsNumPys) {
  // FNV-1a over the bytes of the five doubles of seeds 100000 to 100099
  uint64_t hash = 1469598103934665603u;
  for (uint32_t seed = 100000; seed < 100100; ++seed) {
    const State s = BenchmarkDraw(seed);
    for (const double value : {s.agent_x, s.agent_y, s.block_x, s.block_y, s.block_angle}) {
      unsigned char bytes[sizeof(value)];
      std::memcpy(bytes, &value, sizeof(value));
      for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
    }
  }
  EXPECT_EQ(hash, 0x59c5d60dbf0576c8u);
}

TEST(BenchmarkDrawTest, IsThePublishedList) {
  SHARED_OR_SKIP(path, "pusht/test_inits_100000.txt");
  std::ifstream file(path);
  Start e{100000, 0, 0, 0, 0, 0};
  for (; file >> e.agent_x >> e.agent_y >> e.block_x >> e.block_y >> e.angle; ++e.seed) {
    const State draw = BenchmarkDraw(e.seed);
    EXPECT_EQ(draw.agent_x, e.agent_x);
    EXPECT_EQ(draw.agent_y, e.agent_y);
    EXPECT_EQ(draw.block_x, e.block_x);
    EXPECT_EQ(draw.block_y, e.block_y);
    EXPECT_EQ(draw.block_angle, e.angle);
  }
  EXPECT_EQ(e.seed, 100100u);
}

TEST(LegacyRuleTest, TurnsTheBlockAboutItsCentreOfGravity) {
  // by 90 degrees: the origin moves from above the centre (0, -45) to its right (45, 0)
  const State start = ApplyLegacyRule({1, 2, 100, 200, 1.57079632679489661923});
  EXPECT_NEAR(start.block_x, 145, 1e-12);
  EXPECT_NEAR(start.block_y, 245, 1e-12);
  EXPECT_EQ(start.agent_x, 1);
  EXPECT_EQ(start.agent_y, 2);
  EXPECT_EQ(start.block_angle, 1.57079632679489661923);
  const State unmoved = ApplyLegacyRule({0, 0, 100, 200, 0});
  EXPECT_EQ(unmoved.block_x, 100);
  EXPECT_EQ(unmoved.block_y, 200);
}

}  // namespace
}  // namespace mjp::app
