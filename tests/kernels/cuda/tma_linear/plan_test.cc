#include "kernels/cuda/tma_linear/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

// The tiles and clusters of the linear layers by TMA, which are planned without a GPU.

namespace {

using mjp::ConvArgs;
using mjp::tma_linear::kTokens;
using mjp::tma_linear::MakePlan;
using mjp::tma_linear::MeasuredTime;
using mjp::tma_linear::Plan;
using mjp::tma_linear::Plans;

constexpr size_t kSharedBytes = 227 * 1024;

ConvArgs Tokens(int rows, int in_c, int out_c) {
  ConvArgs a;
  a.shape.batch = rows, a.shape.in_c = in_c, a.shape.out_c = out_c;
  return a;
}

const ConvArgs kShapes[] = {
    Tokens(394, 768, 2304), Tokens(394, 768, 768),  Tokens(394, 768, 3072), Tokens(394, 3072, 768),
    Tokens(302, 512, 1536), Tokens(302, 512, 512),  Tokens(302, 512, 3200), Tokens(302, 3200, 512),
    Tokens(100, 512, 512),  Tokens(1152, 64, 9600), Tokens(33, 64, 96),
};

TEST(TmaLinearPlanTest, EveryPlanMakesAllTilesInSharedMemory) {
  for (const ConvArgs& args : kShapes) {
    SCOPED_TRACE(testing::Message() << args.shape.batch << " tokens, " << args.shape.in_c << " -> "
                                    << args.shape.out_c);
    const std::vector<Plan> plans = Plans(args);
    ASSERT_FALSE(plans.empty());
    for (const Plan& plan : plans) {
      EXPECT_EQ(plan.channel_tiles * plan.channels, args.shape.out_c);
      EXPECT_EQ(plan.channel_tiles % plan.sharers, 0);
      EXPECT_EQ(plan.slices * 64, args.shape.in_c);
      EXPECT_GE(plan.token_tiles * kTokens, args.shape.batch);
      EXPECT_LT((plan.token_tiles - 1) * kTokens, args.shape.batch);
      EXPECT_LE(plan.Cluster(), 8);
      EXPECT_GE(plan.slices / plan.split, plan.split > 1 ? 4 : 1);
      EXPECT_LE(plan.SharedBytes(), kSharedBytes);
      EXPECT_GE(plan.slots, 2);
      EXPECT_LE(plan.slots * plan.SlotBytes(), plan.BarrierOffset());
      EXPECT_LE(kTokens * (plan.channels + 8) * 4, plan.BarrierOffset()) << "the sums";
      EXPECT_EQ(plan.BarrierOffset() % 8, 0);
    }
  }
}

TEST(TmaLinearPlanTest, TakesTheLeastTime) {
  for (const ConvArgs& args : kShapes) {
    const auto best = MakePlan(args);
    ASSERT_TRUE(best);
    for (const Plan& plan : Plans(args)) EXPECT_LE(MeasuredTime(*best), MeasuredTime(plan));
  }
  // what was fastest on an H100
  const auto is = [](const ConvArgs& args, int channels, int split) {
    const auto plan = MakePlan(args);
    return plan->channels == channels && plan->split == split && plan->sharers == 2;
  };
  EXPECT_TRUE(is(kShapes[0], 96, 1));
  EXPECT_TRUE(is(kShapes[1], 64, 1));
  EXPECT_TRUE(is(kShapes[2], 96, 1));
  EXPECT_TRUE(is(kShapes[3], 64, 2));
  EXPECT_TRUE(is(kShapes[4], 64, 1));
  EXPECT_TRUE(is(kShapes[7], 64, 4));
}

TEST(TmaLinearPlanTest, WhatItDoesNotTake) {
  const ConvArgs plain = Tokens(394, 768, 768);
  ASSERT_TRUE(MakePlan(plain));
  const auto refused = [&](auto change) {
    ConvArgs a = plain;
    change(a);
    return !MakePlan(a) && Plans(a).empty();
  };
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.batch = 32; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.batch = 2000; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.in_c = 96; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.out_c = 32; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.first_c = 64; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.phases = 2; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.in_w = a.shape.out_w = 2; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.shape.kernel_w = 3, a.shape.pad_w = 1; }));
  EXPECT_TRUE(refused([](ConvArgs& a) { a.y_fp32 = true; }));
}

TEST(TmaLinearPlanTest, TimeGrowsWithSlicesAndChannels) {
  const auto time = [](const ConvArgs& a) { return MeasuredTime(*MakePlan(a)); };
  EXPECT_GT(time(Tokens(394, 3072, 768)), time(Tokens(394, 768, 768)));
  EXPECT_GT(time(Tokens(1100, 768, 3072)), time(Tokens(394, 768, 3072)));
  EXPECT_EQ(time(Tokens(300, 512, 512)), time(Tokens(302, 512, 512)));
}

}  // namespace
