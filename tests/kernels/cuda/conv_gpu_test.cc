#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/conv/matrix_vector.cuh"
#include "kernels/reference/token_activation_reference.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::ConvShape;
using mjp::Format;

struct Case {
  const char* name;
  ConvShape shape;
  bool bias, residual, relu, fp32_out;
};

ConvShape OneD(int batch, int in_c, int length, int out_c, int kernel, int stride) {
  ConvShape s;
  s.batch = batch, s.in_c = in_c, s.in_w = length, s.out_c = out_c;
  s.kernel_w = kernel, s.stride = stride, s.pad_w = kernel / 2;
  s.out_w = length / stride;
  return s;
}
ConvShape TwoD(int batch, int in_c, int size, int out_c, int kernel, int stride) {
  ConvShape s;
  s.batch = batch, s.in_c = in_c, s.in_h = s.in_w = size, s.out_c = out_c;
  s.kernel_h = s.kernel_w = kernel, s.stride = stride, s.pad_h = s.pad_w = kernel / 2;
  s.out_h = s.out_w = (size - 1) / stride + 1;
  return s;
}
ConvShape Transposed(int batch, int channels, int length) {
  ConvShape s = OneD(batch, channels, length, channels, 2, 1);
  s.phases = 2, s.pad_w = 1;
  return s;
}
ConvShape Concat(ConvShape s, int first) {
  s.first_c = first;
  return s;
}

// Over a map of twice the size both ways, by nearest pixels.
ConvShape Upsampled(int batch, int in_c, int size, int out_c) {
  ConvShape s = TwoD(batch, in_c, 2 * size, out_c, 3, 1);
  s.upsample2x = true;
  return s;
}

const Case kCases[] = {
    {"first layer", OneD(1, 8, 16, 256, 5, 1), true, false, false, false},
    {"k5 split over a cluster", OneD(1, 512, 4, 512, 5, 1), true, false, false, false},
    {"k5 batch", OneD(70, 64, 16, 128, 5, 1), true, false, false, false},
    {"k3 small", OneD(3, 8, 16, 16, 3, 1), true, true, true, false},
    {"strided", OneD(5, 64, 16, 64, 3, 2), true, false, false, false},
    {"transposed", Transposed(5, 72, 8), true, false, false, false},
    {"concatenated", Concat(OneD(2, 256, 8, 64, 5, 1), 128), true, false, false, false},
    {"1x1 to two channels", OneD(2, 256, 16, 2, 1, 1), true, false, false, true},
    {"large", OneD(1024, 64, 16, 128, 5, 1), true, false, false, false},
    {"wgmma, 256 positions in a block", OneD(2100, 64, 16, 256, 5, 1), true, true, true, false},
    {"wgmma, split over a cluster", OneD(64, 512, 8, 128, 5, 1), true, false, false, false},
    {"wgmma, 64 channels", OneD(41, 8, 16, 64, 5, 1), false, true, false, false},
    {"wgmma, concatenated", Concat(OneD(130, 256, 8, 64, 5, 1), 128), true, false, false, false},
    {"wgmma, transposed", Transposed(130, 128, 8), true, false, false, false},
    {"wgmma, strided", OneD(130, 64, 16, 128, 3, 2), true, false, false, false},
    {"wgmma stem", TwoD(9, 8, 24, 64, 7, 2), false, false, true, false},
    {"wgmma pictures", TwoD(9, 64, 11, 64, 3, 1), true, true, true, false},
    {"wgmma pictures, strided", TwoD(31, 72, 11, 128, 3, 2), false, false, false, false},
    {"wgmma pictures, split over a cluster", TwoD(8, 320, 8, 320, 3, 1), true, false, false, false},
    {"wgmma, small tiles", TwoD(1, 64, 17, 192, 3, 1), true, true, true, false},
    {"wgmma, small tiles, split", TwoD(1, 512, 18, 128, 3, 1), true, true, true, false},
    {"wgmma, small tiles, strided", TwoD(2, 128, 30, 64, 3, 2), true, false, true, false},
    {"stem", TwoD(2, 8, 24, 64, 7, 2), false, false, true, false},
    {"residual and ReLU", TwoD(2, 64, 11, 64, 3, 1), true, true, true, false},
    {"1x1 strided", TwoD(3, 64, 11, 128, 1, 2), false, false, false, false},
    {"upsample2x", Upsampled(2, 24, 5, 40), true, false, false, false},
    {"wgmma, upsample2x", Upsampled(9, 64, 6, 64), true, false, false, false},
    {"concatenated pictures", Concat(TwoD(2, 40, 7, 16, 3, 1), 16), true, false, false, false},
    {"wgmma, concatenated pictures", Concat(TwoD(9, 192, 8, 64, 3, 1), 128), true, false, false,
     false},
    {"linear", OneD(1, 1032, 1, 640, 1, 1), true, false, false, true},
    {"linear, added to float32", OneD(2, 1536, 1, 96, 1, 1), true, true, false, true},
};

// The definition, in double: sum over taps and channels of rounded operands.
double Reference(const ConvShape& s, const std::vector<float>& w, const std::vector<float>& x,
                 int b, int oy, int ox, int o, int real_in) {
  double sum = 0;
  const int transposed_ox = ox;
  for (int i = 0; i < real_in; ++i) {
    const auto at = [&](int y, int xx) -> double {
      if (y < 0 || y >= s.in_h || xx < 0 || xx >= s.in_w) return 0;
      const int d = s.upsample2x;
      const size_t row = static_cast<size_t>(b) * (s.in_h >> d) + (y >> d);
      return x[(row * (s.in_w >> d) + (xx >> d)) * s.in_c + i];
    };
    if (s.phases == 2) {
      for (int k = 0; k < 4; ++k) {
        const int twice = transposed_ox + 1 - k;  // 2 ix - 1 + k = ox
        if (twice % 2 == 0)
          sum += w[(static_cast<size_t>(i) * s.out_c + o) * 4 + k] * at(0, twice / 2);
      }
      continue;
    }
    for (int ky = 0; ky < s.kernel_h; ++ky)
      for (int kx = 0; kx < s.kernel_w; ++kx)
        sum += w[((static_cast<size_t>(o) * real_in + i) * s.kernel_h + ky) * s.kernel_w + kx] *
               at(oy * s.stride - s.pad_h + ky, ox * s.stride - s.pad_w + kx);
  }
  return sum;
}

class ConvGpu : public testing::TestWithParam<Format> {};

TEST_P(ConvGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 7);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const ConvShape& s = c.shape;
    const int taps = s.phases == 2 ? 4 : s.kernel_h * s.kernel_w;
    const float gain = 1.0f / std::sqrt(static_cast<float>(taps * s.in_c));
    const auto w = operands.Draw(static_cast<size_t>(s.out_c) * s.in_c * taps, 0.0f, gain);
    const auto x = operands.Draw(static_cast<size_t>(s.batch) * s.in_h * s.in_w * s.in_c >>
                                 (2 * s.upsample2x));
    const size_t out = static_cast<size_t>(s.Positions()) * s.phases * s.out_c;
    const auto bias = operands.Draw(s.out_c), residual = operands.Draw(out);

    const auto packed = mjp::PackConvWeights(format, s, w.data(), s.in_c);
    ASSERT_EQ(packed.size(), mjp::PackedConvBytes(format, s));
    const size_t y_bytes = out * (c.fp32_out ? 4 : mjp::FormatBytes(format));
    const int second = s.first_c ? s.in_c - s.first_c : 0, first = s.in_c - second;
    const auto channels = [&](int from, int count) {
      std::vector<float> part;
      for (size_t p = 0; p < x.size() / s.in_c; ++p)
        part.insert(part.end(), x.begin() + p * s.in_c + from,
                    x.begin() + p * s.in_c + from + count);
      return mjp_test::Stored(format, part);
    };
    const auto x1 = channels(0, first), x2 = channels(first, second);
    const mjp_test::DeviceBuffer dw(packed), db(bias), dx(x1), dx2(x2),
        dr(mjp_test::Stored(c.fp32_out ? Format::kFp32 : format, residual)), dy(y_bytes);

    mjp::ConvArgs a;
    a.shape = s;
    a.x = dx.data(), a.x2 = dx2.data(), a.weight = dw.data();
    a.bias = c.bias ? db.as<float>() : nullptr;
    a.residual = c.residual ? dr.data() : nullptr;
    a.relu = c.relu, a.y = dy.data(), a.y_fp32 = c.fp32_out;
    mjp::LaunchConv(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), c.name);
    const auto y = mjp_test::Floats(c.fp32_out ? Format::kFp32 : format, dy.Download());

    // float32 sums of a few thousand terms, then the output's own rounding
    const double rounding = c.fp32_out || mjp::FormatBytes(format) == 4 ? 2e-6
                            : format == Format::kFp16                   ? 1.2e-3
                                                                        : 9e-3;
    size_t checked = 0;
    const size_t stride = std::max<size_t>(1, out / 4099);
    for (size_t index = 0; index < out; ++index) {
      ASSERT_TRUE(std::isfinite(y[index])) << "element " << index;
      if (index % stride != 0) continue;
      const int o = static_cast<int>(index % s.out_c);
      const int out_w = s.out_w * s.phases;
      const size_t position = index / s.out_c;
      const int ox = static_cast<int>(position % out_w);
      const int oy = static_cast<int>(position / out_w % s.out_h);
      const int b = static_cast<int>(position / out_w / s.out_h);
      double expected = Reference(s, w, x, b, oy, ox, o, s.in_c);
      if (c.bias) expected += bias[o];
      if (c.residual) expected += residual[index];
      if (c.relu) expected = std::max(expected, 0.0);
      ASSERT_NEAR(y[index], expected, rounding * (1 + std::abs(expected))) << "element " << index;
      ++checked;
    }
    EXPECT_GT(checked, 0u);
  }
}

// The kernel for one position, also where there are few weights; with numbers of channels that
// leave warps without a row, and lanes without a vector; and a layer that is its own in LaunchConv.
TEST_P(ConvGpu, OnePositionAgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  if (mjp::FormatBytes(format) != 2) GTEST_SKIP() << "it takes 16-bit formats";
  mjp_test::OperandSource operands(format, 13);
  for (const auto& [in_c, out_c, bias] : {std::tuple{2568, 1001, true},
                                          {8, 5, true},
                                          {1024, 64, false},
                                          {1032, 17, true},
                                          {4096, 8200, true}}) {
    SCOPED_TRACE(testing::Message() << in_c << " to " << out_c);
    const ConvShape s = OneD(1, in_c, 1, out_c, 1, 1);
    const float gain = 1.0f / std::sqrt(static_cast<float>(in_c));
    const auto w = operands.Draw(size_t{1} * in_c * out_c, 0.0f, gain);
    const auto x = operands.Draw(in_c), biases = operands.Draw(out_c);
    const mjp_test::DeviceBuffer dw(mjp::PackConvWeights(format, s, w.data(), in_c)), db(biases),
        dx(mjp_test::Stored(format, x)), dy(out_c * sizeof(float));
    mjp::ConvArgs a;
    a.shape = s, a.x = dx.data(), a.weight = dw.data();
    a.bias = bias ? db.as<float>() : nullptr;
    a.y = dy.data(), a.y_fp32 = true;
    const bool large = size_t{1} * in_c * out_c > (25 << 20);
    ASSERT_EQ(mjp::MatrixVectorSupports(format, a), large);
    mjp::LaunchMatrixVector(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "one position");
    const auto stored = dy.Download();
    const auto y = mjp_test::Floats(Format::kFp32, stored);
    for (int o = 0; o < out_c; ++o) {
      const double expected = Reference(s, w, x, 0, 0, 0, o, in_c) + (bias ? biases[o] : 0);
      ASSERT_NEAR(y[o], expected, 2e-6 * (1 + std::abs(expected))) << "out channel " << o;
    }
    if (!large) continue;
    mjp::CheckCuda(cudaMemset(dy.data(), 0, stored.size()), "cudaMemset");
    mjp::LaunchConv(format, a, nullptr);
    EXPECT_TRUE(dy.Download() == stored);
  }
}

// Linear layers of transformers: a bias for each position of a sequence, and an activation, by the
// general kernel and, for many positions, by wgmma.
TEST_P(ConvGpu, RowBiasAndActivationOfTokens) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 11);
  constexpr int kIn = 64, kOut = 128, kPeriod = 20;
  const auto w = operands.Draw(kOut * kIn, 0.0f, 0.2f), bias = operands.Draw(kOut);
  const auto row_bias = operands.Draw(kPeriod * kOut);
  for (const int rows : {40, 700}) {
    const ConvShape s = OneD(rows, kIn, 1, kOut, 1, 1);
    const auto x = operands.Draw(size_t{1} * rows * kIn);
    const mjp_test::DeviceBuffer dw(mjp::PackConvWeights(format, s, w.data(), kIn)), db(bias),
        dr(row_bias), dx(mjp_test::Stored(format, x));
    for (const auto activation : {mjp::TokenActivation::kNone, mjp::TokenActivation::kRelu,
                                  mjp::TokenActivation::kGeluErf, mjp::TokenActivation::kGeluTanh,
                                  mjp::TokenActivation::kQuickGelu, mjp::TokenActivation::kSilu}) {
      const mjp_test::DeviceBuffer dy(size_t{1} * rows * kOut * mjp::FormatBytes(format));
      mjp::ConvArgs a;
      a.shape = s, a.x = dx.data(), a.weight = dw.data(), a.bias = db.as<float>();
      a.row_bias = dr.as<float>(), a.row_period = kPeriod, a.activation = activation;
      a.y = dy.data();
      mjp::LaunchConv(format, a, nullptr);
      mjp::CheckCuda(cudaDeviceSynchronize(), "linear layer of tokens");
      const auto y = mjp_test::Floats(format, dy.Download());
      const double rounding = mjp::FormatBytes(format) == 4 ? 2e-6
                              : format == Format::kFp16     ? 1.2e-3
                                                            : 9e-3;
      for (int r = 0; r < rows; ++r) {
        for (int o = 0; o < kOut; ++o) {
          const double sum =
              Reference(s, w, x, r, 0, 0, o, kIn) + bias[o] + row_bias[r % kPeriod * kOut + o];
          const double expected = mjp::reference::Activate(activation, sum);
          ASSERT_NEAR(y[r * kOut + o], expected, rounding * (1 + std::abs(expected)))
              << "activation " << static_cast<int>(activation) << ", row " << r << ", channel "
              << o;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ConvGpu,
                         testing::Values(Format::kFp32, Format::kTf32, Format::kFp16,
                                         Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
