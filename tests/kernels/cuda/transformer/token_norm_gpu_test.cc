#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/transformer/token_norm.cuh"
#include "kernels/cuda/transformer/tokens.cuh"
#include "kernels/reference/layer_norm_reference.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Format;

class TokenNormGpu : public testing::TestWithParam<Format> {};

double Largest(const std::vector<float>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = std::abs(a[i] - b[i]) / (1 + std::abs(b[i]));
    if (!(d <= worst)) worst = d;
  }
  return worst;
}

TEST_P(TokenNormGpu, SumAndNormAgreeWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 5), numbers(Format::kFp32, 6);
  for (const int width : {24, 128, 512, 768, 1024, 2048}) {
    SCOPED_TRACE(width);
    constexpr int kRows = 21, kPeriod = 7;
    const size_t size = size_t{1} * kRows * width;
    const auto x = numbers.Draw(size_t{1} * kPeriod * width, 0.5f), branch = operands.Draw(size);
    const auto weight = numbers.Draw(width), bias = numbers.Draw(width);
    const auto second_weight = numbers.Draw(width), second_bias = numbers.Draw(width);
    const mjp_test::DeviceBuffer dx(x), dw(weight), db(bias), sum(4 * size), normed(4 * size),
        dw2(second_weight), db2(second_bias), dbranch(mjp_test::Stored(format, branch)),
        y(size * mjp::FormatBytes(format));
    mjp::TokenNormArgs a;
    a.rows = kRows, a.width = width;
    a.x = dx.as<float>(), a.x_rows = kPeriod, a.branch = dbranch.data();
    a.weight = dw.as<float>(), a.bias = db.as<float>();
    a.sum = sum.as<float>(), a.normed = normed.as<float>(), a.y = y.data();
    mjp::LaunchTokenNorm(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "norm of tokens");
    std::vector<double> v(size);
    for (size_t i = 0; i < size; ++i)
      v[i] = static_cast<double>(x[i % (size_t{1} * kPeriod * width)]) + branch[i];
    const auto expected =
        mjp::reference::LayerNorm(v, width, a.epsilon, weight.data(), bias.data());
    EXPECT_LE(Largest(mjp_test::Floats(Format::kFp32, sum.Download()), v), 1e-6);
    EXPECT_LE(Largest(mjp_test::Floats(Format::kFp32, normed.Download()), expected), 5e-6);
    EXPECT_LE(Largest(mjp_test::Floats(format, y.Download()), expected),
              mjp_test::NormTolerance(format));
    a.second_weight = dw2.as<float>(), a.second_bias = db2.as<float>();
    mjp::LaunchTokenNorm(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "norm of tokens");
    const auto twice = mjp::reference::LayerNorm(expected, width, a.epsilon, second_weight.data(),
                                                 second_bias.data());
    EXPECT_LE(Largest(mjp_test::Floats(Format::kFp32, normed.Download()), expected), 5e-6);
    EXPECT_LE(Largest(mjp_test::Floats(format, y.Download()), twice),
              mjp_test::NormTolerance(format))
        << "a norm of the norm";
  }
}

// Rows of x that stand apart, as those of class tokens do.
TEST_P(TokenNormGpu, RowsOfXMayStandApart) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 15), numbers(Format::kFp32, 16);
  constexpr int kRows = 5, kWidth = 72, kApart = 3;
  constexpr size_t kSize = size_t{1} * kRows * kWidth;
  const auto x = numbers.Draw(kSize * kApart), branch = operands.Draw(kSize);
  const mjp_test::DeviceBuffer dx(x), dbranch(mjp_test::Stored(format, branch)), sum(4 * kSize);
  mjp::TokenNormArgs a;
  a.rows = kRows, a.width = kWidth;
  a.x = dx.as<float>(), a.x_pitch = kApart * kWidth, a.branch = dbranch.data();
  a.normalize = false, a.sum = sum.as<float>();
  mjp::LaunchTokenNorm(format, a, nullptr);
  mjp::CheckCuda(cudaDeviceSynchronize(), "norm of tokens");
  std::vector<double> expected;
  for (size_t i = 0; i < kSize; ++i)
    expected.push_back(double{x[i / kWidth * kApart * kWidth + i % kWidth]} + branch[i]);
  EXPECT_LE(Largest(mjp_test::Floats(Format::kFp32, sum.Download()), expected), 1e-6);
}

TEST_P(TokenNormGpu, TermsAndGateAgreeWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 7), numbers(Format::kFp32, 8);
  constexpr int kSequences = 6, kRowsEach = 5, kWidth = 64, kTimes = 4, kPitch = 3 * kWidth;
  constexpr int kPerCondition = 2, kGate = kWidth, kShift = 2 * kWidth, kScale = 0;
  constexpr int kRows = kSequences * kRowsEach;
  const auto x = numbers.Draw(kRows * kWidth), branch = operands.Draw(kRows * kWidth);
  const auto of_condition = numbers.Draw(kSequences / kPerCondition * kPitch);
  const auto of_time = numbers.Draw(kTimes * kPitch);
  const std::vector<int> time = {3, 0, 2, 1, 1, 3};
  const mjp_test::DeviceBuffer dx(x), dbranch(mjp_test::Stored(format, branch)),
      dcondition(of_condition), dof_time(of_time), dtime(time),
      y(kRows * kWidth * mjp::FormatBytes(format));
  std::vector<double> v, scale, shift;
  for (int s = 0; s < kSequences; ++s) {
    const auto term = [&](int at, int c) {
      return double(of_condition[s / kPerCondition * kPitch + at + c]) +
             of_time[time[s] * kPitch + at + c];
    };
    for (int r = 0; r < kRowsEach; ++r) {
      for (int c = 0; c < kWidth; ++c) {
        const int i = (s * kRowsEach + r) * kWidth + c;
        v.push_back(x[i] + term(kGate, c) * branch[i]);
      }
    }
    for (int c = 0; c < kWidth; ++c)
      scale.push_back(term(kScale, c)), shift.push_back(term(kShift, c));
  }
  const auto expected =
      mjp::reference::Modulate(mjp::reference::LayerNorm(v, kWidth, 1e-6, nullptr, nullptr), kWidth,
                               kRowsEach, scale, shift);
  mjp::TokenNormArgs a;
  a.rows = kRows, a.width = kWidth, a.epsilon = 1e-6f;
  a.x = dx.as<float>(), a.sum = dx.as<float>(), a.branch = dbranch.data(), a.y = y.data();
  a.terms = {dcondition.as<float>(),
             dof_time.as<float>(),
             dtime.as<int>(),
             kPitch,
             kRowsEach,
             kPerCondition,
             kGate,
             kShift,
             kScale};
  mjp::LaunchTokenNorm(format, a, nullptr);
  mjp::CheckCuda(cudaDeviceSynchronize(), "norm of tokens");
  EXPECT_LE(Largest(mjp_test::Floats(format, y.Download()), expected),
            mjp_test::NormTolerance(format));
  EXPECT_LE(Largest(mjp_test::Floats(Format::kFp32, dx.Download()), v), 1e-6) << "in place";
}

TEST_P(TokenNormGpu, TokensStandInTheirOrder) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 9), numbers(Format::kFp32, 10);
  constexpr int kSequences = 3, kWidth = 40, kIn = 5, kMaps = 2, kCells = 6;
  constexpr int kTokens = 2 + kMaps * kCells;
  const auto weight = numbers.Draw(kIn * kWidth), bias = numbers.Draw(2 * kWidth);
  const auto values = numbers.Draw(kSequences * kIn), positions = numbers.Draw(kTokens * kWidth);
  const auto map = operands.Draw(size_t{1} * kMaps * kSequences * kCells * kWidth);
  const size_t size = size_t{1} * kSequences * kTokens * kWidth;
  const mjp_test::DeviceBuffer dw(weight), db(bias), dv(values), dp(positions),
      dm(mjp_test::Stored(format, map)), x(4 * size), y(size * mjp::FormatBytes(format));
  mjp::TokensArgs a;
  a.sequences = kSequences, a.width = kWidth, a.vectors = 2;
  a.vector[0].bias = db.as<float>();
  a.vector[1] = {kIn, dw.as<float>(), db.as<float>() + kWidth, dv.as<float>()};
  a.maps = kMaps, a.cells = kCells, a.map = dm.data(), a.positions = dp.as<float>();
  a.x = x.as<float>(), a.y = y.data();
  ASSERT_EQ(a.Tokens(), kTokens);
  mjp::LaunchTokens(format, a, nullptr);
  mjp::CheckCuda(cudaDeviceSynchronize(), "tokens");
  std::vector<double> expected;
  for (int n = 0; n < kSequences; ++n) {
    for (int t = 0; t < kTokens; ++t) {
      for (int c = 0; c < kWidth; ++c) {
        double value = t < 2 ? bias[t * kWidth + c] : 0.0;
        for (int i = 0; t == 1 && i < kIn; ++i)
          value += double(weight[i * kWidth + c]) * values[n * kIn + i];
        if (t >= 2) {
          const int m = (t - 2) / kCells, cell = (t - 2) % kCells;
          value = map[((m * kSequences + n) * kCells + cell) * kWidth + c];
        }
        expected.push_back(value + positions[t * kWidth + c]);
      }
    }
  }
  EXPECT_LE(Largest(mjp_test::Floats(Format::kFp32, x.Download()), expected), 1e-6);
  EXPECT_LE(Largest(mjp_test::Floats(format, y.Download()), expected),
            mjp_test::NormTolerance(format));
}

TEST(TokenNormGpuShapes, RefusesWidthsWithoutAKernel) {
  mjp::TokenNormArgs a;
  a.rows = 1;
  for (const int width : {12, 2056}) {
    a.width = width;
    EXPECT_THROW(mjp::LaunchTokenNorm(Format::kFp16, a, nullptr), mjp::Error) << width;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, TokenNormGpu,
                         testing::Values(Format::kFp32, Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
