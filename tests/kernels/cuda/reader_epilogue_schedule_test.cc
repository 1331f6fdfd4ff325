#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/megakernel/args.cuh"

namespace {

using mjp::ChainStage;

// A k5 convolution of a level, whose input the layer before leaves as sums to be normalised.
ChainStage Level(int rows, int length, int in_c, int out_c, bool residual) {
  static const float kNumbers = 0;  // an address that says "present"
  ChainStage s;
  s.shape.rows = rows;
  s.shape.in_length = s.shape.out_length = length;
  s.shape.in_c = in_c;
  s.shape.out_c = out_c;
  s.shape.taps = 5;
  s.shape.pad = 2;
  s.shape.residual = residual;
  s.source[0].words = s.source[0].bias = s.source[0].norm_scale = &kNumbers;
  s.source[0].channels = in_c;
  s.source[0].item_channels = in_c / 8;
  return s;
}

// What every plan promises to the kernel.
void CheckPlan(const ChainStage& s) {
  const mjp::FusedConvShape& shape = s.shape;
  const int m_blocks = shape.out_c * shape.phases / s.m_channels, sets = shape.rows / s.rows;
  EXPECT_EQ(m_blocks * s.m_channels, shape.out_c * shape.phases);
  EXPECT_EQ(sets * s.rows, shape.rows);
  EXPECT_LE(m_blocks * s.splits * sets, mjp::kChainMaxBlocks);
  const int share = shape.in_c / s.splits;
  EXPECT_EQ(share * s.splits, shape.in_c);
  EXPECT_EQ(share % 16, 0) << "a multiplication takes 16 channels";
  EXPECT_LE(s.splits, mjp::kChainMaxSplits);
  EXPECT_LE(s.rows * shape.out_length, s.n_tiles * 8);
  EXPECT_EQ(s.layout.pitch / 16 % 2, 1) << "rows would share banks";
}

TEST(ChainPlan, ReadersFinishWholeGroups) {
  for (const int base : {64, 128, 256, 512}) {
    for (int level = 0; level < 3; ++level) {
      const int channels = base << level;
      SCOPED_TRACE(channels);
      ChainStage s = Level(1, 16 >> level, channels, channels, level > 0);
      ASSERT_TRUE(mjp::PlanChainStage(s, false));
      CheckPlan(s);
      EXPECT_EQ(s.rows, 1);
      EXPECT_EQ(channels / s.splits % s.source[0].item_channels, 0);
    }
  }
}

TEST(ChainPlan, ReadersHoldAVectorInEachThread) {
  for (const int length : {32, 64}) {
    ChainStage s = Level(1, length, 256, 256, false);
    const int numbers = s.source[0].item_channels * length;
    EXPECT_EQ(mjp::PlanChainStage(s, false), numbers <= mjp::kChainReaderNumbers) << length;
  }
}

TEST(ChainPlan, BlocksShareRowsWhereTheyFinishOutputs) {
  for (const int base : {256, 512}) {
    for (const int rows : {4, 8, 16}) {
      for (int level = 0; level < 3; ++level) {
        const int channels = base << level;
        SCOPED_TRACE(testing::Message() << rows << " rows of " << channels);
        ChainStage s = Level(rows, 16 >> level, channels, channels, false);
        s.source[0].bias = s.source[0].norm_scale = nullptr;  // finished
        s.own.words = s.source[0].words;
        s.own.channels = channels;
        s.own.item_channels = channels / 8;
        ASSERT_TRUE(mjp::PlanChainStage(s, true));
        CheckPlan(s);
      }
    }
  }
}

TEST(ChainPlan, RefusesWhatTheKernelCannotDo) {
  ChainStage odd = Level(1, 12, 256, 256, false);
  EXPECT_FALSE(mjp::PlanChainStage(odd, false)) << "length 12";
  ChainStage narrow = Level(1, 16, 8, 256, false);
  EXPECT_FALSE(mjp::PlanChainStage(narrow, false)) << "8 channels";
  ChainStage many = Level(256, 16, 256, 256, false);
  EXPECT_FALSE(mjp::PlanChainStage(many, false)) << "4096 positions";
}

}  // namespace
