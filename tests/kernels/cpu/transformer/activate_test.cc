#include "kernels/cpu/transformer/activate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/reference/token_activation_reference.h"

namespace {

using mjp::TokenActivation;

const TokenActivation kAll[] = {TokenActivation::kNone,      TokenActivation::kRelu,
                                TokenActivation::kGeluErf,   TokenActivation::kGeluTanh,
                                TokenActivation::kQuickGelu, TokenActivation::kSilu};

class ActivateTest : public testing::TestWithParam<TokenActivation> {};

TEST_P(ActivateTest, AgreesWithDoubleEverywhere) {
  std::vector<float> x;
  for (float v = -30; v < 30; v += 0.00173f) x.push_back(v);
  for (float v = -200; v < 200; v += 0.173f) x.push_back(v);
  x.insert(x.end(), {0.0f, -0.0f, 1e-30f, -1e-30f, 1e4f, -1e4f, 1e10f, -1e10f});
  std::vector<float> y(x.size());
  mjp::cpu::Activate(GetParam(), x.data(), static_cast<int64_t>(x.size()), y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = mjp::reference::Activate(GetParam(), x[i]);
    // a float32's rounding of x moves the result by as much; far below zero it is 0 but for 1e-24
    ASSERT_NEAR(y[i], expected, 3e-7 + 1e-6 * std::abs(expected)) << "x = " << x[i];
  }
}

TEST_P(ActivateTest, AnyLengthAndNothingBeyond) {
  for (int size = 1; size < 40; ++size) {
    std::vector<float> x(48, 0.5f), y(48, 7.0f);
    mjp::cpu::Activate(GetParam(), x.data(), size, y.data());
    const auto expected = static_cast<float>(mjp::reference::Activate(GetParam(), 0.5));
    for (int i = 0; i < 48; ++i) ASSERT_NEAR(y[i], i < size ? expected : 7.0f, 1e-6) << size;
  }
}

TEST_P(ActivateTest, NotANumberIsNotLost) {
  for (size_t at = 0; at < 20; ++at) {
    std::vector<float> x(20, 1.0f);
    x[at] = NAN;
    mjp::cpu::Activate(GetParam(), x.data(), 20, x.data());
    for (size_t i = 0; i < 20; ++i) EXPECT_EQ(std::isnan(x[i]), i == at) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ActivateTest, testing::ValuesIn(kAll));

}  // namespace
