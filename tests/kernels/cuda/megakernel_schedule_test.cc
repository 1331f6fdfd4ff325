#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/cuda/megakernel/megakernel.cuh"

namespace {

using mjp::WideStage;

WideStage Convolution(int in_length, int in_c, int out_c, bool residual, int skip_channels = 0) {
  WideStage s;
  s.shape.in_length = s.shape.out_length = in_length;
  s.shape.in_c = in_c, s.shape.out_c = out_c;
  s.shape.taps = 5, s.shape.pad = 2, s.shape.residual = residual;
  s.source_channels = in_c - skip_channels;
  return s;
}

WideStage Down(int in_length, int channels) {
  WideStage s = Convolution(in_length, channels, channels, false);
  s.shape.out_length = in_length / 2;
  s.shape.taps = 3, s.shape.stride = 2, s.shape.pad = 1;
  return s;
}

WideStage Up(int in_length, int channels) {
  WideStage s = Convolution(in_length, channels, channels, false);
  s.shape.taps = 2, s.shape.phases = 2, s.shape.pad = 0;
  return s;
}

// Every product is made once, by a block whose team sends its sums to the block that finishes them.
void CheckWork(const WideStage& s) {
  const mjp::FusedConvShape& shape = s.shape;
  const int group_channels = shape.out_c / mjp::kWideGroups;
  std::set<std::tuple<int, int, int, int>> made;  // row, phase, out tile, share
  for (int block = 0; block < mjp::kWideBlocks; ++block) {
    const mjp::WideItem item = mjp::ItemOfBlock(block);
    const int row = item.slot;
    const mjp::WideTeam team = mjp::TeamOf(s, item);
    if (!team.multiplies) continue;
    const int groups = 1 << s.groups_log2, rows = 1 << s.rows_log2;
    const int out = team.tile * groups * group_channels + team.out;
    ASSERT_LE(out + mjp::kWideTile, shape.out_c);
    ASSERT_GE(row, team.row0);
    ASSERT_LT(row, team.row0 + rows);
    ASSERT_EQ(item.group / groups, team.tile);
    ASSERT_LE(team.out + mjp::kWideTile, groups * group_channels);
    for (int r = 0; r < rows; ++r)
      ASSERT_TRUE(made.insert({team.row0 + r, team.phase, out, team.split}).second)
          << "twice: block " << block;
  }
  const size_t all = size_t{mjp::kWideSlots} * shape.phases * (shape.out_c / mjp::kWideTile) *
                     (shape.in_c / s.share);
  EXPECT_EQ(made.size(), all) << "something is made by no block";
}

void CheckPlan(WideStage s) {
  ASSERT_TRUE(mjp::PlanWideStage(s));
  CheckWork(s);
  EXPECT_EQ(s.share << s.splits_log2, s.shape.in_c);
  EXPECT_EQ(s.share % mjp::kWideFilling, 0) << "the share is whole fillings of the input";
  EXPECT_EQ(s.source_channels % mjp::kWideFilling, 0) << "a filling is of one source";
  EXPECT_LE(s.shape.in_length << s.rows_log2, mjp::kChainThreads)
      << "what a thread reads is evenly apart";
  const int positions = s.shape.out_length << s.rows_log2;
  EXPECT_TRUE(positions >= 4 && positions <= 64) << positions;
  EXPECT_TRUE(s.share == mjp::kWideFilling || (positions == 64 && s.shape.stride == 1))
      << "only such shares take several fillings";
  const int numbers = s.shape.out_c / mjp::kWideGroups * s.shape.out_length * s.shape.phases;
  EXPECT_EQ(s.sums.words, numbers << s.splits_log2);
  EXPECT_EQ(s.beside.words, s.shape.residual ? s.sums.words : 0);
  EXPECT_EQ(numbers % 128, 0) << "an item is whole warps of four numbers per thread";
}

// Every convolution of a U-Net of three levels from `base` channels on.
void CheckNetwork(int base) {
  SCOPED_TRACE(base);
  for (int level = 0; level < 3; ++level) {
    SCOPED_TRACE(level);
    const int channels = base << level, length = 16 >> level;
    CheckPlan(Convolution(length, channels, channels, false));
    if (level == 2) break;
    CheckPlan(Down(length, channels));
    CheckPlan(Convolution(length / 2, channels, channels * 2, true));
  }
  for (int level = 1; level >= 0; --level) {
    SCOPED_TRACE(level);
    const int channels = base << level, length = 8 >> level;
    CheckPlan(Convolution(length, channels * 4, channels, true, channels * 2));
    CheckPlan(Convolution(length, channels, channels, false));
    CheckPlan(Up(length, channels));
  }
}

TEST(WidePlan, EveryProductIsMadeOnce) {
  for (const int base : {128, 256, 512}) CheckNetwork(base);
}

TEST(WidePlan, BlocksStayTogetherWhereATeamHasAllRows) {
  const auto together = [](std::vector<WideStage> stages) {
    for (WideStage& s : stages) EXPECT_TRUE(mjp::PlanWideStage(s));
    return mjp::KeepBlocksTogether(stages);
  };
  const auto network = [](int base) {
    const auto level = [&](int i) { return Convolution(16 >> i, base << i, base << i, false); };
    return std::vector<WideStage>{level(0), level(1), level(2)};
  };
  EXPECT_TRUE(together(network(256)));
  EXPECT_TRUE(together(network(512)));
  EXPECT_FALSE(together(network(128))) << "teams of 4 of the 16 slots at most";
  WideStage first = Convolution(16, 0, 256, false);  // the first convolution has no products
  EXPECT_FALSE(together({first}));
}

TEST(WidePlan, AFenceStandsBeforeTheLastStageWithAllRows) {
  std::vector<WideStage> stages = {
      Convolution(16, 0, 256, false),    Convolution(16, 256, 256, false),
      Convolution(8, 512, 512, false),   Convolution(4, 512, 1024, true),
      Convolution(4, 1024, 1024, false), Convolution(4, 1024, 1024, false)};
  for (WideStage& s : stages) ASSERT_TRUE(mjp::PlanWideStage(s));
  ASSERT_TRUE(mjp::KeepBlocksTogether(stages));
  mjp::PlaceFence(stages);
  for (size_t i = 0; i < stages.size(); ++i) {
    EXPECT_EQ(stages[i].fence, i == 4) << i;
    EXPECT_EQ(1 << stages[i].rows_log2 == mjp::kWideSlots, i > 3) << i;
  }
}

TEST(WidePlan, ThreadsHaveRolesWhereItemsAreSmallAndInputsAreFilledOnce) {
  const auto roles = [](std::vector<WideStage> stages) {
    for (WideStage& s : stages) EXPECT_TRUE(mjp::PlanWideStage(s));
    return mjp::HaveRoles(stages);
  };
  const WideStage first = Convolution(16, 0, 256, false), small = Convolution(16, 256, 256, false);
  EXPECT_TRUE(roles({first, small, Convolution(4, 2048, 512, true, 1024)}));
  EXPECT_FALSE(roles({first, Convolution(16, 512, 512, false)})) << "1024 numbers";
  WideStage refilled = Convolution(4, 1024, 1024, false);
  ASSERT_TRUE(mjp::PlanWideStage(refilled));
  EXPECT_TRUE(mjp::HaveRoles({refilled}));
  refilled.share = 2 * mjp::kWideFilling;
  EXPECT_FALSE(mjp::HaveRoles({refilled}));
}

// Of an item made whole a block has all in channels and its group's out channels, as many weights
// as of a tile; nothing travels.
TEST(WidePlan, ItemsAreMadeWholeWhereABlocksWeightsStayAsMany) {
  std::vector<WideStage> stages = {
      Convolution(16, 0, 256, false),  Convolution(16, 256, 256, false),
      Convolution(8, 256, 256, false), Down(16, 256),
      Convolution(16, 256, 256, true), Convolution(8, 256, 256, false, 128),
      Convolution(8, 256, 512, false), Up(8, 256),
      Convolution(4, 512, 512, false)};
  for (WideStage& s : stages) ASSERT_TRUE(mjp::PlanWideStage(s));
  std::vector<WideStage> whole = stages;
  mjp::PlanWhole(whole);
  for (size_t i = 0; i < stages.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(whole[i].whole, i >= 1 && i <= 3);
    if (!whole[i].whole) {
      EXPECT_EQ(whole[i].share, stages[i].share) << "the others stay as they are planned";
      EXPECT_EQ(whole[i].sums.words, stages[i].sums.words);
      continue;
    }
    EXPECT_EQ(whole[i].share, 256);
    EXPECT_EQ(whole[i].sums.words, 0);
    EXPECT_EQ(mjp::kWholeTile * 256, mjp::kWideTile * stages[i].share);
    for (int block = 0; block < mjp::kWideBlocks; ++block) {
      const mjp::WideItem item = mjp::ItemOfBlock(block);
      const mjp::WideTeam team = mjp::TeamOf(whole[i], item);
      EXPECT_TRUE(team.multiplies);
      EXPECT_EQ(team.row0, item.slot);
      EXPECT_EQ(team.tile, item.group);
      EXPECT_EQ(team.split + team.phase + team.out, 0);
    }
  }
}

// A block has the first and the last layer's weights of its own channels alone, and sums in the
// format in which they travel.
TEST(WidePlan, ManyActionsFit) {
  mjp::WideChainArgs args;
  args.waves = 2, args.roles = true;
  std::vector<WideStage> stages = {Convolution(16, 256, 256, false), Down(8, 512),
                                   Convolution(4, 2048, 512, true, 1024), Up(8, 256)};
  for (WideStage& s : stages) ASSERT_TRUE(mjp::PlanWideStage(s));
  mjp::PlanWhole(stages);
  args.stage_count = 29;  // of three levels
  const auto bytes = [&](mjp::Format format, int actions) {
    args.format = format;
    args.chain.rows = 32, args.chain.length = 16, args.chain.action_dim = actions;
    args.chain.first.taps = 5, args.chain.first.in_c = actions, args.chain.first.out_c = 256;
    args.chain.border = 2 * actions;
    args.chain.last.channels = 256;
    return mjp::PlanWideSpace(stages, args, mjp::kFusedMaxSharedBytes).bytes;
  };
  const size_t room = mjp::kFusedMaxSharedBytes;
  EXPECT_LE(bytes(mjp::Format::kFp16, 16), room);
  EXPECT_LE(bytes(mjp::Format::kBf16, 12), room);
  EXPECT_GT(bytes(mjp::Format::kBf16, 14), room) << "several launches, of 16 rows";
}

TEST(WidePlan, OtherShapesAreRefused) {
  WideStage odd = Convolution(16, 256, 256, false);
  odd.shape.taps = 7;
  EXPECT_FALSE(mjp::PlanWideStage(odd));
  WideStage steep = Down(16, 1024);
  EXPECT_FALSE(mjp::PlanWideStage(steep)) << "several fillings of a stride of 2";
  WideStage narrow = Convolution(16, 32, 32, false);
  EXPECT_FALSE(mjp::PlanWideStage(narrow));
  WideStage large = Convolution(16, 1024, 1024, false);
  EXPECT_FALSE(mjp::PlanWideStage(large)) << "2048 numbers are more than a block finishes";
}

}  // namespace
