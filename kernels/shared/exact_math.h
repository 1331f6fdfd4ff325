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

// Sine and cosine of an angle, |a| < 2^18, each within 4e-16 of 1 and a few roundings of itself.
MJP_HOST_DEVICE inline void SinCosOfSeveralTurns(double a, double* sine, double* cosine) {
  constexpr double kTwoOverPi = 0.6366197723675814;
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
  const double quarter = rint(Mul(a, kTwoOverPi));
  const double r = Add(Add(a, -Mul(quarter, kHalfPiHigh)), -Mul(quarter, kHalfPiLow));
  const double y = Mul(r, r);
  const double s = Mul(r, OnePlusPolynomial(kSine, y));
  const double c = OnePlusPolynomial(kCosine, y);
  const int q = static_cast<int>(quarter) & 3;
  *sine = q == 0 ? s : q == 1 ? c : q == 2 ? -s : -c;
  *cosine = q == 0 ? c : q == 1 ? -s : q == 2 ? -c : s;
}

// Sine and cosine of a finite angle, within 1e-15 for angles in [-2 pi, 2 pi]; beyond, the error
// grows by 2.5e-16 per turn (the distance of the double 2 pi from the number).
MJP_HOST_DEVICE inline void SinCos(double angle, double* sine, double* cosine) {
  SinCosOfSeveralTurns(fmod(angle, 6.283185307179586), sine, cosine);
}

// e^x within 2 roundings, 0 below -708 and infinite above 709; NaN stays NaN.
MJP_HOST_DEVICE inline double Exp(double x) {
  if (!(x >= -708)) return x < -708 ? 0.0 : x;
  if (x > 709) return HUGE_VAL;
  constexpr double kLog2E = 1.4426950408889634;
  // ln 2 as the sum of a number of 33 bits, whose small multiples are exact, and the rest
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  const double m = rint(Mul(x, kLog2E));
  const double r = Add(Add(x, -Mul(m, kLn2High)), -Mul(m, kLn2Low));  // within ln 2 / 2
  // 1 / k!, k = 14 ... 2
  const double kTerms[13] = {1.0 / 87178291200,
                             1.0 / 6227020800,
                             1.0 / 479001600,
                             1.0 / 39916800,
                             1.0 / 3628800,
                             1.0 / 362880,
                             1.0 / 40320,
                             1.0 / 5040,
                             1.0 / 720,
                             1.0 / 120,
                             1.0 / 24,
                             1.0 / 6,
                             0.5};
  double sum = kTerms[0];
  for (int i = 1; i < 13; ++i) sum = Add(kTerms[i], Mul(r, sum));
  return ldexp(Add(1.0, Add(r, Mul(Mul(r, r), sum))), static_cast<int>(m));
}

}  // namespace mjp::exact

#endif  // KERNELS_SHARED_EXACT_MATH_H_
