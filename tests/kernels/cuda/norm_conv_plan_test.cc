#include "kernels/cuda/norm_conv/norm_conv_plan.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "kernels/cuda/primitives/gpu_traits.h"

namespace {

using mjp::Format;

// A k5 convolution of a level, as the U-Net's plan describes it.
mjp::NormConvArgs Level(int rows, int length, int channels, int out_c, bool residual) {
  mjp::NormConvArgs a;
  a.shape.rows = rows;
  a.shape.in_length = a.shape.out_length = length;
  a.shape.in_c = channels;
  a.shape.out_c = out_c;
  a.shape.taps = 5;
  a.shape.pad = 2;
  a.shape.shortcut = residual;
  a.source[0].channels = channels;
  a.source[0].group_channels = channels / 8;
  return a;
}

class NormConvPlan : public testing::TestWithParam<int> {};

TEST_P(NormConvPlan, EveryBlockGetsWholeGroupsAndRoomForItsTile) {
  const int rows = GetParam();
  for (const int base : {128, 256, 512}) {
    for (int level = 0; level < 3; ++level) {
      const int channels = base << level, length = 16 >> level;
      for (const bool residual : {false, true}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, length " << length);
        const mjp::NormConvArgs a = Level(rows, length, channels, channels, residual);
        ASSERT_TRUE(mjp::NormConvSupports(Format::kFp16, a));
        size_t shared_bytes = 0;
        const mjp::NormConvKernelArgs p = mjp::PlanNormConv(Format::kFp16, a, &shared_bytes);
        EXPECT_LE(shared_bytes, size_t{mjp::kMaxSharedBytesSm90});
        EXPECT_EQ(p.slice_channels * p.config.split_k, channels);
        EXPECT_EQ(p.slice_channels % a.source[0].group_channels, 0);
        EXPECT_LE(p.config.block_rows * length, p.config.n_tiles * 8);
        EXPECT_EQ(channels % p.config.block_m, 0);
        const int warp_m = 16 * mjp::WarpTiles(p.config.n_tiles, residual);
        EXPECT_EQ(p.config.block_m % warp_m, 0);
        EXPECT_LE(p.config.block_m / warp_m, mjp::kNormConvWarps);
        EXPECT_EQ(p.layout.pitch / 16 % 2, 1) << "rows would share banks";
        EXPECT_GE(p.ring_chunks, 1);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, NormConvPlan, testing::Values(1, 2, 3, 8, 16, 17, 32, 64));

TEST(NormConvPlan, RefusesWhatTheKernelCannotDo) {
  EXPECT_FALSE(mjp::NormConvSupports(Format::kFp32, Level(1, 16, 256, 256, false)));
  EXPECT_FALSE(mjp::NormConvSupports(Format::kFp16, Level(1, 12, 256, 256, false)));
  EXPECT_FALSE(mjp::NormConvSupports(Format::kFp16, Level(1, 16, 32, 32, false)));
  EXPECT_FALSE(mjp::NormConvSupports(Format::kFp16, Level(1, 64, 512, 512, false)));
}

}  // namespace
