#include "kernels/cpu/conv.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/reference/conv_reference.h"
#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp::cpu::Block;
using mjp::cpu::ConvLayer;
using mjp::cpu::Features;
using mjp_test::CheckClose;
using mjp_test::GuardedFeatures;
using mjp_test::RandomFloats;

struct Case {
  std::string name;
  mjp::reference::ConvShape shape;
  bool slice = false;  // input and output stand inside wider maps
};

mjp::reference::ConvShape OneD(int batch, int in, int length, int out, int kernel, int stride) {
  return {.batch = batch,
          .in = in,
          .width = length,
          .out = out,
          .kernel_w = kernel,
          .stride = stride,
          .pad_w = kernel / 2};
}
mjp::reference::ConvShape TwoD(int batch, int in, int height, int width, int out, int kernel,
                               int stride) {
  return {.batch = batch,
          .in = in,
          .height = height,
          .width = width,
          .out = out,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride = stride,
          .pad_h = kernel / 2,
          .pad_w = kernel / 2};
}

const Case kCases[] = {
    {"k5", OneD(3, 64, 16, 96, 5, 1)},
    {"k5_deep", OneD(2, 300, 4, 64, 5, 1)},
    {"k5_two_channels", OneD(2, 2, 16, 8, 5, 1)},
    {"k3", OneD(5, 17, 8, 33, 3, 1)},
    {"k1_to_two", OneD(4, 40, 16, 2, 1, 1)},
    {"k3_strided", OneD(2, 32, 16, 32, 3, 2)},
    {"k3_strided_odd", OneD(2, 5, 15, 7, 3, 2)},
    {"k3_strided_slice", OneD(2, 32, 16, 32, 3, 2), true},
    {"k5_slice", OneD(3, 24, 4, 40, 5, 1), true},
    {"many_rows", OneD(20, 8, 64, 16, 5, 1)},
    {"stem7", TwoD(2, 3, 21, 18, 64, 7, 2)},
    {"c3x3", TwoD(2, 16, 9, 11, 48, 3, 1)},
    {"c3x3_strided", TwoD(1, 64, 10, 9, 32, 3, 2)},
    {"c1x1_strided", TwoD(3, 16, 6, 6, 32, 1, 2)},
    // so many panels and positions that the patches are interleaved, on every instruction set
    {"wide", OneD(3, 90, 16, 270, 5, 1)},
    {"wide_slice", OneD(9, 37, 5, 300, 3, 1), true},
    {"wide_3x3", TwoD(2, 20, 13, 12, 272, 3, 1)},
    {"wide_3x3_strided", TwoD(1, 33, 21, 19, 260, 3, 2)},
};

class ConvTest : public testing::TestWithParam<Case> {};

// limit of a float32 sum of products below 1: some hundred terms, errors of either sign
constexpr double kLimit = 2e-5;

TEST_P(ConvTest, AgreesWithDouble) {
  const mjp::reference::ConvShape& s = GetParam().shape;
  const bool slice = GetParam().slice;
  const std::vector<float> x = RandomFloats(size_t{1} * s.batch * s.in * s.height * s.width, 1);
  const std::vector<float> weight =
      RandomFloats(size_t{1} * s.out * s.in * s.kernel_h * s.kernel_w, 2);
  const std::vector<float> bias = RandomFloats(s.out, 3);
  const int extra = slice ? 3 : 0;
  GuardedFeatures in({.batch = s.batch,
                      .height = s.height,
                      .width = s.width,
                      .channels = s.in,
                      .pitch = s.in + 2 * extra,
                      .halo_y = s.pad_h,
                      .halo_x = s.pad_w},
                     extra);
  GuardedFeatures out({.batch = s.batch,
                       .height = s.OutHeight(),
                       .width = s.OutWidth(),
                       .channels = s.out,
                       .pitch = s.out + 2 * extra,
                       .halo_y = 1,
                       .halo_x = 2},
                      extra);
  in.Set(x);
  const ConvLayer layer =
      s.kernel_h > 1 || s.height > 1
          ? mjp::cpu::MakeConv2d(weight.data(), bias.data(), s.out, s.in, s.kernel_w, s.stride)
          : mjp::cpu::MakeConv1d(weight.data(), bias.data(), s.out, s.in, s.kernel_w, s.stride);
  Convolve(layer, in.view, out.view, WholeBlock(out.view));
  const std::vector<float> whole = out.Get();
  EXPECT_TRUE(
      CheckClose(whole, mjp::reference::Conv(s, x.data(), weight.data(), bias.data()), kLimit));
  EXPECT_TRUE(out.Intact());

  // in blocks, the same bits
  GuardedFeatures parts({.batch = s.batch,
                         .height = s.OutHeight(),
                         .width = s.OutWidth(),
                         .channels = s.out,
                         .halo_y = 1,
                         .halo_x = 1});
  const int panel = mjp::cpu::PanelChannels();
  for (int n = 0; n < s.batch; ++n) {
    for (int c = 0; c < s.out; c += panel) {
      Convolve(layer, in.view, parts.view, {n, n + 1, c, std::min(c + panel, s.out)});
    }
  }
  EXPECT_EQ(parts.Get(), whole);
}

INSTANTIATE_TEST_SUITE_P(All, ConvTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(TransposedConvTest, AgreesWithDouble) {
  for (const int channels : {3, 32, 70}) {
    const int batch = 3, length = 4, out_channels = channels + 2;
    const std::vector<float> x = RandomFloats(size_t{1} * batch * channels * length, 1);
    const std::vector<float> weight = RandomFloats(size_t{4} * channels * out_channels, 2);
    const std::vector<float> bias = RandomFloats(out_channels, 3);
    GuardedFeatures in({.batch = batch, .width = length, .channels = channels, .halo_x = 1});
    GuardedFeatures out({.batch = batch,
                         .width = 2 * length,
                         .channels = out_channels,
                         .pitch = 2 * out_channels,
                         .halo_x = 2});
    in.Set(x);
    const ConvLayer layer =
        mjp::cpu::MakeTransposedConv1d(weight.data(), bias.data(), out_channels, channels);
    Convolve(layer, in.view, out.view, WholeBlock(out.view));
    EXPECT_TRUE(CheckClose(out.Get(),
                           mjp::reference::TransposedConv1d(batch, channels, out_channels, length,
                                                            x.data(), weight.data(), bias.data()),
                           kLimit));
    EXPECT_TRUE(out.Intact());
  }
}

TEST(LinearTest, AgreesWithDouble) {
  const int rows = 5, in = 132, out = 77, pitch = 140;
  const std::vector<float> x = RandomFloats(rows * in, 1), weight = RandomFloats(out * pitch, 2);
  const ConvLayer layer = mjp::cpu::MakeLinear(weight.data() + 8, nullptr, out, in, pitch);
  std::vector<float> y(rows * out);
  mjp::cpu::LinearRows(layer, x.data(), in, rows, y.data(), out, 0, out);
  std::vector<double> expected;
  for (int r = 0; r < rows; ++r) {
    for (int o = 0; o < out; ++o) {
      double sum = 0;
      for (int i = 0; i < in; ++i) sum += double{x[r * in + i]} * weight[o * pitch + 8 + i];
      expected.push_back(sum);
    }
  }
  EXPECT_TRUE(CheckClose(y, expected, kLimit));
}

TEST(ConvTest, NotANumberIsNotLost) {
  const std::vector<float> weight(64, 0.5f);
  GuardedFeatures in({.batch = 1, .width = 4, .channels = 8});
  GuardedFeatures out({.batch = 1, .width = 4, .channels = 8});
  in.Set(std::vector<float>(32, 1.0f));
  in.view.At(0, 0, 2)[3] = NAN;
  const ConvLayer layer = mjp::cpu::MakeConv1d(weight.data(), nullptr, 8, 8, 1, 1);
  Convolve(layer, in.view, out.view, WholeBlock(out.view));
  out.ForEach([](float& v, int, int, int w, int) { EXPECT_EQ(std::isnan(v), w == 2); });
}

#ifdef __SANITIZE_ADDRESS__
// the inner loop is compiled without the sanitizer: its ranges are checked before it
TEST(ConvDeathTest, AddressSanitizerSeesEachRange) {
  const int rows = 3, in = 40, out = 24;
  const std::vector<float> weight = RandomFloats(out * in, 1);
  ConvLayer layer = mjp::cpu::MakeLinear(weight.data(), nullptr, out, in, in);
  const auto run = [&](int missing_x, int missing_y) {
    const std::vector<float> x(rows * in - missing_x);
    std::vector<float> y(rows * out - missing_y);
    mjp::cpu::LinearRows(layer, x.data(), in, rows, y.data(), out, 0, out);
  };
  run(0, 0);
  EXPECT_DEATH(run(1, 0), "heap-buffer-overflow");
  EXPECT_DEATH(run(0, 1), "heap-buffer-overflow");
  layer.weights[0] = mjp::cpu::MakeLinear(weight.data(), nullptr, out, in - 1, in).weights[0];
  layer.weights[0].depth = in;
  EXPECT_DEATH(run(0, 0), "heap-buffer-overflow");
}
#endif

}  // namespace
