#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/conv/implicit_gemm_wgmma.cuh"
#include "kernels/reference/token_activation_reference.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Format;
using mjp::TokenActivation;

struct Case {
  int rows, in, out, row_period;  // 0: no bias of the rows
  TokenActivation activation;
};
// ACT's and CLIP's layers, k split or not, and sizes that fill no tile.
const Case kCases[] = {
    {302, 512, 1536, 302, TokenActivation::kNone},    {302, 512, 512, 0, TokenActivation::kNone},
    {302, 512, 3200, 0, TokenActivation::kRelu},      {302, 3200, 512, 0, TokenActivation::kNone},
    {394, 768, 3072, 0, TokenActivation::kQuickGelu}, {33, 64, 64, 11, TokenActivation::kGeluErf},
    {65, 1024, 128, 13, TokenActivation::kGeluTanh},  {1000, 192, 320, 0, TokenActivation::kSilu}};

class TokenLinearGpu : public testing::TestWithParam<Format> {};

mjp::ConvArgs ArgsOf(const Case& c) {
  mjp::ConvArgs a;
  a.shape.batch = c.rows, a.shape.in_c = c.in, a.shape.out_c = c.out;
  a.activation = c.activation;
  return a;
}

// The difference of element i of y from its definition.
double Difference(const Case& c, const std::vector<float>& x, const std::vector<float>& weight,
                  const std::vector<float>& bias, const std::vector<float>& row_bias, size_t i,
                  double y) {
  const size_t row = i / c.out, column = i % c.out;
  double sum = bias[column];
  if (c.row_period > 0) sum += row_bias[row % c.row_period * c.out + column];
  for (int k = 0; k < c.in; ++k) sum += double{x[row * c.in + k]} * weight[column * c.in + k];
  const double expected = mjp::reference::Activate(c.activation, sum);
  return std::abs(y - expected) / (1 + std::abs(expected));
}

TEST_P(TokenLinearGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 11), numbers(Format::kFp32, 12);
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.rows << " rows, " << c.in << " -> " << c.out);
    mjp::ConvArgs a = ArgsOf(c);
    if (!mjp::WgmmaConvSupports(format, a)) GTEST_SKIP() << "no warpgroup products here";
    const auto x = operands.Draw(size_t{1} * c.rows * c.in);
    const auto weight =
        operands.Draw(size_t{1} * c.out * c.in, 0.0f, 1 / std::sqrt(static_cast<float>(c.in)));
    const auto bias = numbers.Draw(c.out);
    const auto row_bias = numbers.Draw(size_t{1} * std::max(c.row_period, 1) * c.out);
    const mjp_test::DeviceBuffer dx(mjp_test::Stored(format, x)),
        dw(mjp::PackConvWeights(format, a.shape, weight.data(), c.in)), db(bias), drow(row_bias),
        y(size_t{2} * c.rows * c.out);
    a.x = dx.data(), a.weight = dw.data(), a.bias = db.as<float>(), a.y = y.data();
    if (c.row_period > 0) a.row_bias = drow.as<float>(), a.row_period = c.row_period;
    mjp::LaunchWgmmaConv(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "linear layer of tokens");
    const auto out = mjp_test::Floats(format, y.Download());
    double worst = 0;
    for (size_t i = 0; i < out.size(); i += 7) {  // each row and column of a tile
      const double d = Difference(c, x, weight, bias, row_bias, i, out[i]);
      if (!(d <= worst)) worst = d;
    }
    // the result's rounding; its float32 sum is far closer
    EXPECT_LE(worst, format == Format::kFp16 ? 6e-4 : 5e-3);
  }
}

TEST_P(TokenLinearGpu, NotANumberStaysInItsRow) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  const Case c = {70, 512, 512, 0, TokenActivation::kNone};
  mjp::ConvArgs a = ArgsOf(c);
  if (!mjp::WgmmaConvSupports(format, a)) GTEST_SKIP() << "no warpgroup products here";
  mjp_test::OperandSource operands(format, 13);
  auto x = operands.Draw(size_t{1} * c.rows * c.in);
  x[size_t{66} * c.in + 300] = NAN;
  const auto weight = operands.Draw(size_t{1} * c.out * c.in);
  const mjp_test::DeviceBuffer dx(mjp_test::Stored(format, x)),
      dw(mjp::PackConvWeights(format, a.shape, weight.data(), c.in)), y(size_t{2} * c.rows * c.out);
  a.x = dx.data(), a.weight = dw.data(), a.y = y.data();
  mjp::LaunchWgmmaConv(format, a, nullptr);
  mjp::CheckCuda(cudaDeviceSynchronize(), "linear layer of tokens");
  const auto out = mjp_test::Floats(format, y.Download());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(std::isnan(out[i]), i / c.out == 66) << i;
}

INSTANTIATE_TEST_SUITE_P(Formats, TokenLinearGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
