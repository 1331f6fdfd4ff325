#ifndef KERNELS_SHARED_EXACT_MATH_H_
#define KERNELS_SHARED_EXACT_MATH_H_

#include <cmath>

#include "kernels/shared/host_device.h"

// Double-precision functions that give the same bits on the CPU and the GPU: nothing but IEEE
// additions and multiplications, each rounded once (never contracted), and the exact fmod and rint.

namespace mjp::exact {

MJP_HOST_DEVICE inline double Mul(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

MJP_HOST_DEVICE inline double Add(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

// 1 + y (c[0] + y (c[1] + ...)) of degree 8 in y, from the last coefficient down.
MJP_HOST_DEVICE inline double OnePlusPolynomial(const double (&c)[8], double y) {
  double sum = c[7];
  for (int i = 6; i >= 0; --i) sum = Add(c[i], Mul(y, sum));
  return Add(1.0, Mul(y, sum));
}

// Sine and cosine of a finite angle, within 1e-15 for angles in [-2 pi, 2 pi]; beyond, the error
// grows by 2.5e-16 per turn (the distance of the double 2 pi from the number).
MJP_HOST_DEVICE inline void SinCos(double angle, double* sine, double* cosine) {
  constexpr double kTwoPi = 6.283185307179586, kTwoOverPi = 0.6366197723675814;
  // pi / 2 as the sum of a number of 33 bits, whose small multiples are exact, and the rest
  constexpr double kHalfPiHigh = 1.57079632673412561417e+00;
  constexpr double kHalfPiLow = 6.07710050650619224932e-11;
  // (-1)^k / (2k + 1)! and (-1)^k / (2k)!
  const double kSine[8] = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  const double kCosine[8] = {
      -1.0 / 2,       1.0 / 24,        -1.0 / 720,         1.0 / 40320,
      -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
  const double a = fmod(angle, kTwoPi);
  const double quarter = rint(Mul(a, kTwoOverPi));  // -4 ... 4
  const double r = Add(Add(a, -Mul(quarter, kHalfPiHigh)), -Mul(quarter, kHalfPiLow));
  const double y = Mul(r, r);
  const double s = Mul(r, OnePlusPolynomial(kSine, y));
  const double c = OnePlusPolynomial(kCosine, y);
  const int q = static_cast<int>(quarter) & 3;
  *sine = q == 0 ? s : q == 1 ? c : q == 2 ? -s : -c;
  *cosine = q == 0 ? c : q == 1 ? -s : q == 2 ? -c : s;
}

}  // namespace mjp::exact

#endif  // KERNELS_SHARED_EXACT_MATH_H_
