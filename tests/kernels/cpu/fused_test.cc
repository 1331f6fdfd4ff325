#include "kernels/cpu/fused.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

// The multiply-add without an instruction for it, against the C library's.

namespace {

#if defined(__SSE2__) && !defined(__FMA__)

void ExpectFused(const float (&a)[4], const float (&b)[4], const float (&c)[4]) {
  float y[4];
  _mm_storeu_ps(y, mjp::cpu::FusedByDouble(_mm_loadu_ps(a), _mm_loadu_ps(b), _mm_loadu_ps(c)));
  for (int i = 0; i < 4; ++i) {
    const float truth = std::fma(a[i], b[i], c[i]);
    if (std::isnan(truth) && std::isnan(y[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(truth))
        << a[i] << " * " << b[i] << " + " << c[i];
  }
}

TEST(FusedTest, AnyNumbers) {
  std::mt19937 random(1);
  for (int i = 0; i < 500000; ++i) {
    float v[3][4];
    for (auto& row : v)
      for (float& x : row) x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    ExpectFused(v[0], v[1], v[2]);
  }
}

// Sums that lie in, or just beside, the middle of two floats: what rounding twice gets wrong.
TEST(FusedTest, Middles) {
  std::mt19937 random(2);
  int wrong_if_rounded_twice = 0;
  for (int i = 0; i < 500000; ++i) {
    float a[4], b[4], c[4];
    for (int k = 0; k < 4; ++k) {
      // c is far larger than a b, which is a power of two and a little
      c[k] = static_cast<float>(1 + (random() >> 9) * 0x1p-23);
      a[k] = static_cast<float>((random() % 2 ? 1 : -1) * 0x1p-12);
      b[k] = static_cast<float>(0x1p-12 * (1 + (random() % 3) * 0x1p-22));
      if (random() % 4 == 0) b[k] = static_cast<float>(0x1p-12 + 0x1p-35);
      const double twice = double{a[k]} * b[k] + c[k];
      wrong_if_rounded_twice += static_cast<float>(twice) != std::fma(a[k], b[k], c[k]);
    }
    ExpectFused(a, b, c);
  }
  // and far smaller ones, whose trace is lost in 53 bits
  for (int i = 0; i < 500000; ++i) {
    float a[4], b[4], c[4];
    for (int k = 0; k < 4; ++k) {
      // a b = 2^-24 (1 + 2^-23)(1 - 2^-23) = 2^-24 (1 - 2^-46): beside the middle, by less than
      // 2^-53
      a[k] = static_cast<float>((1 + 0x1p-23) * 0x1p-12);
      b[k] = static_cast<float>((1 - 0x1p-23) * 0x1p-12);
      c[k] = static_cast<float>(1 + (random() >> 9) * 0x1p-23);
      const double twice = double{a[k]} * b[k] + c[k];
      wrong_if_rounded_twice += static_cast<float>(twice) != std::fma(a[k], b[k], c[k]);
    }
    ExpectFused(a, b, c);
  }
  EXPECT_GT(wrong_if_rounded_twice, 0) << "the numbers above prove nothing";
}

TEST(FusedTest, NumbersOfFewBits) {
  std::mt19937 random(3);
  const auto tiny = [&] {
    return std::bit_cast<float>(static_cast<uint32_t>(random() & 0x80ffffffu));
  };
  for (int i = 0; i < 200000; ++i) {
    float a[4], b[4], c[4];
    for (int k = 0; k < 4; ++k) {
      a[k] = std::bit_cast<float>(static_cast<uint32_t>((random() & 0x9fffffffu) | 0x10000000u));
      b[k] = std::ldexp(1.0f + (random() >> 9) * 0x1p-23f, -static_cast<int>(random() % 64));
      c[k] = tiny();
    }
    ExpectFused(a, b, c);
  }
}

#else

TEST(FusedTest, IsAnInstruction) {
  GTEST_SKIP() << "this build has fused multiply-adds: kernels/cpu/fused.h is empty";
}

#endif

}  // namespace
