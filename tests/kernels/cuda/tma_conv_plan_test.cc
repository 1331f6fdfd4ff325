#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/tma_conv/plan.h"

// The tiles of the convolution by TMA, which are planned without a GPU.

namespace {

using mjp::ConvArgs;
using mjp::tma_conv::kPositions;
using mjp::tma_conv::MakePlan;
using mjp::tma_conv::Plan;

constexpr size_t kSharedBytes = 227 * 1024;

ConvArgs Map(int batch, int height, int width, int in_c, int out_c, int kernel) {
  ConvArgs a;
  a.shape.batch = batch, a.shape.in_c = in_c, a.shape.out_c = out_c;
  a.shape.in_h = a.shape.out_h = height, a.shape.in_w = a.shape.out_w = width;
  a.shape.kernel_h = a.shape.kernel_w = kernel;
  a.shape.pad_h = a.shape.pad_w = kernel / 2;
  return a;
}
ConvArgs Tokens(int rows, int in_c, int out_c) { return Map(rows, 1, 1, in_c, out_c, 1); }

// How often the tiles make each position of the output, as the kernel walks them.
std::vector<int> Covered(const Plan& plan) {
  std::vector<int> times(size_t{1} * plan.maps * plan.height * plan.map_width);
  for (int tile = 0; tile < plan.Tiles(); ++tile) {
    const int x0 = tile % plan.columns * plan.width;
    const int y0 = tile / plan.columns % plan.bands * plan.rows;
    const int map = tile / plan.columns / plan.bands;
    for (int row = 0; row < kPositions; ++row) {
      const int dy = row / plan.pitch, dx = row % plan.pitch;
      const bool inside =
          dy < plan.rows && dx < plan.width && y0 + dy < plan.height && x0 + dx < plan.map_width;
      if (inside) ++times[(size_t{1} * map * plan.height + y0 + dy) * plan.map_width + x0 + dx];
    }
  }
  return times;
}

TEST(TmaConvPlanTest, EachPositionIsMadeOnceAndReadsItsOwnPatch) {
  for (const auto& [height, width] : {std::pair{120, 160},
                                      {60, 80},
                                      {30, 40},
                                      {15, 20},
                                      {21, 21},
                                      {3, 300},
                                      {1, 16},
                                      {7, 1},
                                      {1, 1},
                                      {241, 2}}) {
    for (const int kernel : {1, 3, 5}) {
      SCOPED_TRACE(testing::Message() << height << "x" << width << ", kernel " << kernel);
      const ConvArgs args = Map(2, height, width, 64, 128, kernel);
      const auto plan = MakePlan(args);
      ASSERT_TRUE(plan);
      for (const int times : Covered(*plan)) ASSERT_EQ(times, 1);
      EXPECT_LE(plan->SharedBytes(), kSharedBytes);
      EXPECT_LE(plan->pitch, 256);
      EXPECT_GE(plan->patch_slots, 2);
      EXPECT_GE(plan->weight_slots, 2);
      // the last tap of the last position, and of the last that nobody needs
      const int tap = (kernel - 1) * plan->pitch + kernel - 1;
      EXPECT_LT((plan->rows - 1) * plan->pitch + plan->width - 1 + tap, plan->patch_rows);
      EXPECT_LE(kPositions + tap, plan->slot_rows);
      EXPECT_EQ(plan->slot_rows % 8, 0) << "each slot starts where the swizzle does";
    }
  }
}

TEST(TmaConvPlanTest, TokensAreRowsOrSequencesWithTheirBias) {
  const auto rows = MakePlan(Tokens(19328, 512, 3200));
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->Tiles(), 76);
  EXPECT_EQ(rows->Units(3200), 76 * 25);
  ConvArgs a = Tokens(64 * 302, 512, 1536);
  a.row_bias = reinterpret_cast<const float*>(&a);
  a.row_period = 302;
  const auto sequences = MakePlan(a);
  ASSERT_TRUE(sequences);
  EXPECT_EQ(sequences->width, 8) << "a thread's positions share two biases";
  EXPECT_EQ(sequences->pitch, 8);
  EXPECT_EQ(sequences->Tiles(), 2 * 38);
  for (const int times : Covered(*sequences)) ASSERT_EQ(times, 1);
  a.row_period = 300;
  EXPECT_FALSE(MakePlan(a)) << "no whole sequences";
}

TEST(TmaConvPlanTest, WhatItDoesNotTake) {
  const ConvArgs plain = Map(2, 30, 40, 128, 192, 3);
  ASSERT_TRUE(MakePlan(plain));
  EXPECT_EQ(MakePlan(plain)->channels, 64);
  const auto refused = [&](auto change) {
    ConvArgs a = plain;
    change(a);
    return !MakePlan(a);
  };
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.in_c = 96; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.out_c = 96; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.first_c = 64; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.upsample2x = true; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.phases = 2; }));
  EXPECT_TRUE(
      refused([](ConvArgs& a) { a.shape.stride = 2, a.shape.out_h = 15, a.shape.out_w = 20; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.row_bias = reinterpret_cast<const float*>(&a); }));
}

// The larger the work, the longer; and a map of few tiles takes as long as one of a few more.
TEST(TmaConvPlanTest, TimeGrowsWithRoundsOfTiles) {
  const auto time = [](const ConvArgs& a) {
    return mjp::tma_conv::MeasuredTime(*MakePlan(a), a.shape);
  };
  EXPECT_EQ(time(Tokens(256, 512, 512)), time(Tokens(4096, 512, 512)));
  EXPECT_GT(time(Tokens(40000, 512, 512)), time(Tokens(4096, 512, 512)));
  EXPECT_GT(time(Tokens(256, 1024, 512)), time(Tokens(256, 512, 512)));
}

}  // namespace
