#include "kernels/shared/exact_math.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace {

// Long double has 11 bits more than double on x86, and 60 more on aarch64.
TEST(ExactMathTest, ExponentialIsWithinTwoRoundings) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-708, 709);
  for (int i = 0; i < 100000; ++i) {
    const double x = i % 2 == 0 ? exponent(random) : exponent(random) / 1000;
    const long double truth = std::exp(static_cast<long double>(x));
    const long double error = std::abs(mjp::exact::Exp(x) - truth) / truth;
    ASSERT_LE(static_cast<double>(error), 2 * 0x1p-53) << x;
  }
}

TEST(ExactMathTest, ExponentialAtTheEnds) {
  EXPECT_EQ(mjp::exact::Exp(0), 1);
  EXPECT_EQ(mjp::exact::Exp(-1e300), 0);
  EXPECT_EQ(mjp::exact::Exp(-std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(mjp::exact::Exp(710), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(mjp::exact::Exp(std::nan(""))));
}

TEST(ExactMathTest, SineAndCosineOfManyTurns) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> angle(-1000, 1000);
  for (int i = 0; i < 100000; ++i) {
    const double a = angle(random);
    double sine, cosine;
    mjp::exact::SinCosOfSeveralTurns(a, &sine, &cosine);
    ASSERT_NEAR(sine, static_cast<double>(std::sin(static_cast<long double>(a))), 4e-16) << a;
    ASSERT_NEAR(cosine, static_cast<double>(std::cos(static_cast<long double>(a))), 4e-16) << a;
  }
}

}  // namespace
