#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/norm/conv_group_norm.cuh"
#include "kernels/reference/group_norm_reference.h"
#include "tests/support/goldens/differences.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Format;

struct Case {
  const char* name;
  int frames, size, in_c, out_c, kernel, stride, groups;
  bool bias, residual, relu;
  int copies = 1;  // of the frames, behind one another
};
const Case kCases[] = {
    {"9 positions, k split", 2, 3, 128, 64, 3, 1, 4, false, true, true},
    {"16 positions, groups of 4", 1, 7, 24, 64, 3, 2, 16, true, false, true},
    {"36 positions", 3, 6, 64, 64, 3, 1, 4, false, false, false},
    {"one stage of k", 2, 12, 64, 32, 1, 2, 2, false, false, false},
    {"two slices, groups of 8", 2, 12, 32, 48, 3, 1, 6, false, true, true},
    {"two uneven slices", 2, 11, 64, 32, 3, 1, 2, true, false, true},
    {"four slices", 1, 17, 32, 16, 3, 1, 1, false, true, true},
    {"eight slices", 2, 24, 64, 32, 3, 1, 2, false, true, true},
    {"eight uneven slices", 8, 21, 16, 16, 5, 1, 2, false, false, true},
    {"one position", 2, 1, 72, 64, 3, 1, 4, false, false, true},
    {"whole maps", 3, 24, 64, 64, 3, 1, 4, false, true, true, 100},
    {"whole maps, odd size", 2, 21, 64, 64, 3, 1, 8, false, true, false, 50},
    {"whole maps, one group", 5, 18, 64, 64, 3, 1, 1, false, false, true, 13},
};

class ConvGroupNormGpu : public testing::TestWithParam<Format> {};

// y = act(GN(conv(x)) + residual), in double on rounded operands; copies of a picture have its
// bits.
TEST_P(ConvGroupNormGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 13);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    mjp::ConvGroupNormArgs a;
    mjp::ConvShape& s = a.conv.shape;
    s.batch = c.frames * c.copies, s.in_h = s.in_w = c.size, s.in_c = c.in_c, s.out_c = c.out_c;
    s.kernel_h = s.kernel_w = c.kernel, s.stride = c.stride, s.pad_h = s.pad_w = c.kernel / 2;
    s.out_h = s.out_w = (c.size - 1) / c.stride + 1;
    const int positions = s.out_h * s.out_w;
    const size_t out = size_t{1} * c.frames * positions * c.out_c;
    const auto w = operands.Draw(size_t{1} * c.out_c * s.K(), 0.0f, 1 / std::sqrt(float(s.K())));
    // a mean far from zero, where a one-pass variance would cancel
    const auto x = operands.Draw(size_t{1} * c.frames * c.size * c.size * c.in_c, 2.0f, 1.0f);
    const auto residual = operands.Draw(out, 0.0f, 1.0f), bias = operands.Draw(c.out_c, 0.0f, 1.0f);
    const auto scale = operands.Draw(c.out_c, 1.0f, 0.5f),
               shift = operands.Draw(c.out_c, 0.0f, 1.0f);

    const auto packed = mjp::PackConvWeights(format, s, w.data(), c.in_c);
    const auto stored_x = mjp_test::Repeated(mjp_test::Stored(format, x), c.copies);
    const auto stored_residual = mjp_test::Repeated(mjp_test::Stored(format, residual), c.copies);
    const mjp_test::DeviceBuffer dw(packed), dx(stored_x), dr(stored_residual),
        dy(stored_residual.size()), db(bias), dscale(scale), dshift(shift);
    a.conv.x = dx.data(), a.conv.weight = dw.data(), a.conv.y = dy.data();
    a.conv.bias = c.bias ? db.as<float>() : nullptr;
    a.conv.residual = c.residual ? dr.data() : nullptr;
    a.conv.relu = c.relu;
    a.groups = c.groups, a.weight = dscale.as<float>(), a.bias = dshift.as<float>();
    ASSERT_TRUE(mjp::ConvGroupNormSupports(format, a));
    mjp::LaunchConvGroupNorm(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), c.name);
    const auto y = mjp_test::Floats(format, dy.Download());

    std::vector<double> sums(out);
    for (size_t i = 0; i < out; ++i) {
      const int o = static_cast<int>(i % c.out_c), position = static_cast<int>(i / c.out_c);
      const int ox = position % s.out_w, oy = position / s.out_w % s.out_h;
      double sum = c.bias ? bias[o] : 0;
      for (int ky = 0; ky < c.kernel; ++ky) {
        for (int kx = 0; kx < c.kernel; ++kx) {
          const int iy = oy * c.stride - s.pad_h + ky, ix = ox * c.stride - s.pad_w + kx;
          if (iy < 0 || iy >= c.size || ix < 0 || ix >= c.size) continue;
          const float* pixel =
              &x[((size_t{1} * (position / positions) * c.size + iy) * c.size + ix) * c.in_c];
          for (int k = 0; k < c.in_c; ++k)
            sum += double{w[((size_t{1} * o * c.in_c + k) * c.kernel + ky) * c.kernel + kx]} *
                   pixel[k];
        }
      }
      sums[i] = sum;
    }
    const double rounding = format == Format::kFp16 ? 1.2e-3 : 9e-3;
    const auto normalised = mjp::reference::GroupNorm(sums, c.frames, positions, c.out_c, c.groups,
                                                      scale.data(), shift.data());
    for (size_t i = 0; i < y.size(); ++i) {
      if (i >= out) {
        ASSERT_EQ(y[i], y[i % out]) << "element " << i;
        continue;
      }
      double expected = normalised[i];
      double magnitude = std::abs(expected);  // of the terms, which may cancel
      if (c.residual) expected += residual[i], magnitude += std::abs(residual[i]);
      if (c.relu) expected = std::max(expected, 0.0);
      ASSERT_NEAR(y[i], expected, rounding * (1 + magnitude)) << "element " << i;
    }
  }
}

TEST(ConvGroupNormGpuTest, OtherShapesAreLeftToTheOthers) {
  DEVICE_OR_SKIP();
  mjp::ConvGroupNormArgs a;
  a.groups = 4;
  a.conv.shape.in_c = a.conv.shape.out_c = 64;
  EXPECT_TRUE(mjp::ConvGroupNormSupports(Format::kFp16, a));
  EXPECT_FALSE(mjp::ConvGroupNormSupports(Format::kFp32, a));
  a.conv.shape.batch = 100;
  EXPECT_FALSE(mjp::ConvGroupNormSupports(Format::kFp16, a)) << "many pictures";
  a.conv.shape.batch = 1, a.conv.shape.out_h = a.conv.shape.out_w = 48;
  EXPECT_FALSE(mjp::ConvGroupNormSupports(Format::kFp16, a)) << "many positions";
  a.conv.shape.out_h = a.conv.shape.out_w = 4, a.groups = 1;
  EXPECT_FALSE(mjp::ConvGroupNormSupports(Format::kFp16, a)) << "a wide group";
}

// No kernel here reads them: a layer that has some must not come here, whatever the GPU.
TEST(ConvGroupNormGpuTest, TermsOfTokensAreLeftToTheOthers) {
  const float bias = 0;
  for (const int pictures : {1, 100}) {
    mjp::ConvGroupNormArgs a;
    a.groups = 4;
    mjp::ConvShape& s = a.conv.shape;
    s.batch = pictures, s.in_c = s.out_c = 64;
    s.kernel_h = s.kernel_w = 3, s.pad_h = s.pad_w = 1;
    s.in_h = s.in_w = s.out_h = s.out_w = pictures == 1 ? 4 : 24;
    a.conv.row_bias = &bias;
    EXPECT_FALSE(mjp::ConvGroupNormSupports(Format::kFp16, a)) << pictures;
    a.conv.row_bias = nullptr, a.conv.activation = mjp::TokenActivation::kRelu;
    EXPECT_FALSE(mjp::ConvGroupNormSupports(Format::kFp16, a)) << pictures;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ConvGroupNormGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
