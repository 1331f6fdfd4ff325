#include "kernels/shared/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace {

// known answers of the Random123 library
TEST(PhiloxTest, KnownAnswers) {
  const mjp::PhiloxWords zero = mjp::Philox({{0, 0, 0, 0}}, 0, 0);
  EXPECT_EQ(zero.w[0], 0x6627e8d5u);
  EXPECT_EQ(zero.w[1], 0xe169c58du);
  EXPECT_EQ(zero.w[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.w[3], 0x9b00dbd8u);
  const uint32_t ones = 0xffffffffu;
  const mjp::PhiloxWords full = mjp::Philox({{ones, ones, ones, ones}}, ones, ones);
  EXPECT_EQ(full.w[0], 0x408f276du);
  EXPECT_EQ(full.w[1], 0x41c83b0eu);
  EXPECT_EQ(full.w[2], 0xa20bc7c6u);
  EXPECT_EQ(full.w[3], 0x6d5451fdu);
  const mjp::PhiloxWords pi =
      mjp::Philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0);
  EXPECT_EQ(pi.w[0], 0xd16cfe09u);
  EXPECT_EQ(pi.w[1], 0x94fdccebu);
  EXPECT_EQ(pi.w[2], 0x5001e420u);
  EXPECT_EQ(pi.w[3], 0x24126ea1u);
}

TEST(PhiloxTest, NormalsHaveTheMomentsOfANormal) {
  constexpr int kQuads = 100000;
  double sums[5] = {};
  for (int i = 0; i < kQuads; ++i) {
    float z[4];
    mjp::NormalQuad(7, 3, 42, static_cast<uint32_t>(i), z);
    for (const double v : z) {
      ASSERT_TRUE(std::isfinite(v));
      for (int power = 1; power <= 4; ++power) sums[power] += std::pow(v, power);
    }
  }
  const double count = 4.0 * kQuads;  // deviations of the four moments: 1.6e-3, 2.2e-3, 6e-3, 15e-3
  EXPECT_NEAR(sums[1] / count, 0, 0.008);
  EXPECT_NEAR(sums[2] / count, 1, 0.011);
  EXPECT_NEAR(sums[3] / count, 0, 0.03);
  EXPECT_NEAR(sums[4] / count, 3, 0.08);
}

TEST(PhiloxTest, EveryPartOfTheAddressCounts) {
  std::set<float> first;
  const auto add = [&](uint64_t seed, uint32_t decision, uint32_t step, uint32_t quad) {
    float z[4];
    mjp::NormalQuad(seed, decision, step, quad, z);
    first.insert(z[0]);
  };
  add(1, 0, 0, 0);
  add(uint64_t{1} << 32, 0, 0, 0);
  add(1, 1, 0, 0);
  add(1, 0, 1, 0);
  add(1, 0, mjp::kStartStep, 0);
  add(1, 0, 0, 1);
  EXPECT_EQ(first.size(), 6u);
}

}  // namespace
