#ifndef KERNELS_CPU_FUSED_H_
#define KERNELS_CPU_FUSED_H_

// Multiply-adds that are rounded once, for x86 processors that have no instruction for them.
// Included by kernels/cpu/simd.h.

#if defined(__SSE2__) && !defined(__FMA__)

#include <emmintrin.h>

namespace mjp::cpu {

// a b + c of four floats. The product is exact in double precision, and the sum is rounded to 53
// bits. Rounding that to 24 bits is the one rounding wanted, but where the sum of 53 bits lies in
// the middle of two floats, or where floats have fewer bits: there the C library does it.
[[gnu::always_inline]] inline __m128 FusedByDouble(__m128 a, __m128 b, __m128 c) {
  const auto upper = [](__m128 v) { return _mm_cvtps_pd(_mm_movehl_ps(v, v)); };
  const __m128d first = _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
  const __m128d second = _mm_add_pd(_mm_mul_pd(upper(a), upper(b)), upper(c));
  const __m128 halves[2] = {_mm_castpd_ps(first), _mm_castpd_ps(second)};
  const __m128i low = _mm_castps_si128(_mm_shuffle_ps(halves[0], halves[1], 0x88));
  const __m128i high = _mm_castps_si128(_mm_shuffle_ps(halves[0], halves[1], 0xdd));
  const __m128i middle =
      _mm_cmpeq_epi32(_mm_and_si128(low, _mm_set1_epi32(0x1fffffff)), _mm_set1_epi32(0x10000000));
  // the upper word of 2^-126, the least float of full precision
  const __m128i size = _mm_and_si128(high, _mm_set1_epi32(0x7fffffff));
  const __m128i small = _mm_and_si128(_mm_cmplt_epi32(size, _mm_set1_epi32(0x38100000)),
                                      _mm_cmpgt_epi32(size, _mm_setzero_si128()));
  const __m128 rounded = _mm_movelh_ps(_mm_cvtpd_ps(first), _mm_cvtpd_ps(second));
  if (__builtin_expect(_mm_movemask_epi8(_mm_or_si128(middle, small)) == 0, 1)) return rounded;
  float x[4], y[4], z[4];
  _mm_storeu_ps(x, a);
  _mm_storeu_ps(y, b);
  _mm_storeu_ps(z, c);
  for (int i = 0; i < 4; ++i) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return _mm_loadu_ps(z);
}

}  // namespace mjp::cpu

#endif

#endif  // KERNELS_CPU_FUSED_H_
