#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/megakernel/args.cuh"

namespace {

namespace megakernel = mjp::megakernel;
using megakernel::ReaderLayer;

// A k5 convolution of a level, whose input the layer before leaves as partial sums.
ReaderLayer Level(int rows, int length, int in_c, int out_c, bool residual) {
  static const float kPresent = 0;  // an address that says "present"
  ReaderLayer s;
  s.shape.rows = rows;
  s.shape.in_length = s.shape.out_length = length;
  s.shape.in_c = in_c;
  s.shape.out_c = out_c;
  s.shape.taps = 5;
  s.shape.pad = 2;
  s.shape.shortcut = residual;
  s.source[0].values = s.source[0].bias = s.source[0].norm_scale = &kPresent;
  s.source[0].channels = in_c;
  s.source[0].group_channels = in_c / 8;
  return s;
}

// What every plan promises to the kernel.
void CheckPlan(const ReaderLayer& s) {
  const mjp::NormConvShape& shape = s.shape;
  const int m_blocks = shape.out_c * shape.phases / s.m_channels, sets = shape.rows / s.rows;
  EXPECT_EQ(m_blocks * s.m_channels, shape.out_c * shape.phases);
  EXPECT_EQ(sets * s.rows, shape.rows);
  EXPECT_LE(m_blocks * s.split_k * sets, megakernel::kReaderMaxCtas);
  const int k_slice = shape.in_c / s.split_k;
  EXPECT_EQ(k_slice * s.split_k, shape.in_c);
  EXPECT_EQ(k_slice % 16, 0) << "a multiplication takes 16 channels";
  EXPECT_LE(s.split_k, megakernel::kMaxPartialSums);
  EXPECT_LE(s.rows * shape.out_length, s.n_tiles * 8);
  EXPECT_EQ(s.layout.pitch / 16 % 2, 1) << "rows would share banks";
}

TEST(ReaderEpilogueSchedule, ReadersNormalizeWholeGroups) {
  for (const int base : {64, 128, 256, 512}) {
    for (int level = 0; level < 3; ++level) {
      const int channels = base << level;
      SCOPED_TRACE(channels);
      ReaderLayer s = Level(1, 16 >> level, channels, channels, level > 0);
      ASSERT_TRUE(megakernel::PlanReaderLayer(s, false));
      CheckPlan(s);
      EXPECT_EQ(s.rows, 1);
      EXPECT_EQ(channels / s.split_k % s.source[0].group_channels, 0);
    }
  }
}

TEST(ReaderEpilogueSchedule, ReadersHoldAVectorInEachThread) {
  for (const int length : {32, 64}) {
    ReaderLayer s = Level(1, length, 256, 256, false);
    const int values = s.source[0].group_channels * length;
    EXPECT_EQ(megakernel::PlanReaderLayer(s, false), values <= megakernel::kReaderMaxTileValues)
        << length;
  }
}

TEST(ReaderEpilogueSchedule, CtasSplitRowsWithAnOwnerEpilogue) {
  for (const int base : {256, 512}) {
    for (const int rows : {4, 8, 16}) {
      for (int level = 0; level < 3; ++level) {
        const int channels = base << level;
        SCOPED_TRACE(testing::Message() << rows << " rows of " << channels);
        ReaderLayer s = Level(rows, 16 >> level, channels, channels, false);
        s.source[0].bias = s.source[0].norm_scale = nullptr;  // materialised
        s.own.values = s.source[0].values;
        s.own.channels = channels;
        s.own.group_channels = channels / 8;
        ASSERT_TRUE(megakernel::PlanReaderLayer(s, true));
        CheckPlan(s);
      }
    }
  }
}

TEST(ReaderEpilogueSchedule, RefusesWhatTheKernelCannotDo) {
  ReaderLayer odd = Level(1, 12, 256, 256, false);
  EXPECT_FALSE(megakernel::PlanReaderLayer(odd, false)) << "length 12";
  ReaderLayer small = Level(1, 16, 8, 256, false);
  EXPECT_FALSE(megakernel::PlanReaderLayer(small, false)) << "8 channels";
  ReaderLayer many = Level(256, 16, 256, 256, false);
  EXPECT_FALSE(megakernel::PlanReaderLayer(many, false)) << "4096 positions";
}

}  // namespace
