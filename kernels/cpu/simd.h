#ifndef KERNELS_CPU_SIMD_H_
#define KERNELS_CPU_SIMD_H_

// For the sources that are compiled once per instruction set, with MJP_ISA naming it. Everything
// they define, and their whole copy of Eigen, lives in a namespace of that name, so that no
// function compiled for one processor is ever called on another. They use no templates of the
// standard library for the same reason.

#ifndef MJP_ISA
#error "compile this source through mjp_add_simd_sources (kernels/CMakeLists.txt)"
#endif

#define MJP_JOIN_(a, b) a##b
#define MJP_JOIN(a, b) MJP_JOIN_(a, b)
#define Eigen MJP_JOIN(Eigen_, MJP_ISA)

#include <Eigen/Core>

#include "kernels/cpu/fused.h"

// Every instruction set gives the same bits (but MJP_UNFUSED, kernels/cpu/isa.h): a multiply-add is
// rounded once, a sum over a row has kSumLanes partial sums whatever the width of a register, and
// functions are made of the operations below alone.

namespace mjp::cpu::MJP_ISA {

namespace simd = ::Eigen::internal;

using Packet = simd::packet_traits<float>::type;
inline constexpr int kLanes = simd::packet_traits<float>::size;
inline constexpr int kSumLanes = 16;  // partial sums of a row: one of AVX-512's registers
inline constexpr int kParts = kSumLanes / kLanes;  // registers that hold them

inline Packet Load(const float* p) { return simd::ploadu<Packet>(p); }
inline void Store(float* p, const Packet& v) { simd::pstoreu(p, v); }
inline Packet Broadcast(float v) { return simd::pset1<Packet>(v); }

// a b + c, rounded once (MJP_UNFUSED: twice)
inline Packet Fma(const Packet& a, const Packet& b, const Packet& c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(MJP_UNFUSED)
  return simd::pmadd(a, b, c);
#else
  return FusedByDouble(a, b, c);
#endif
}

// b > a ? b : a and b < a ? b : a, so a where either is NaN
#ifdef __ARM_NEON
inline Packet Max(const Packet& a, const Packet& b) { return vbslq_f32(vcgtq_f32(b, a), b, a); }
inline Packet Min(const Packet& a, const Packet& b) { return vbslq_f32(vcltq_f32(b, a), b, a); }
#else
inline Packet Max(const Packet& a, const Packet& b) { return simd::pmax(a, b); }
inline Packet Min(const Packet& a, const Packet& b) { return simd::pmin(a, b); }
#endif

// 2^m of whole numbers in [-127, 128]; 2^-127 counts as 0.
inline Packet PowerOfTwo(const Packet& m) {
  const Packet exponent = simd::padd(m, Broadcast(127.0f));
#if defined(__AVX512F__)
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvttps_epi32(exponent), 23));
#elif defined(__AVX2__)
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvttps_epi32(exponent), 23));
#elif defined(__ARM_NEON)
  return vreinterpretq_f32_s32(vshlq_n_s32(vcvtq_s32_f32(exponent), 23));
#else
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvttps_epi32(exponent), 23));
#endif
}

// e^x within 2 ulp for x in [-87, 88]: e^x = 2^m e^r with m = floor(x / ln 2 + 1/2), and the
// polynomial of Cephes for e^r. Beyond, x counts as +-88.376; NaN stays NaN.
inline Packet Exp(const Packet& x) {
  const Packet bounded = Max(Min(x, Broadcast(88.3762626647950f)), Broadcast(-88.3762626647949f));
  const Packet m = simd::pfloor(Fma(bounded, Broadcast(1.44269504088896341f), Broadcast(0.5f)));
#ifdef MJP_UNFUSED  // ln 2 in two parts, the product with the first of which is exact (Cephes)
  const Packet coarse = simd::psub(bounded, simd::pmul(m, Broadcast(0.693359375f)));
  const Packet r = simd::psub(coarse, simd::pmul(m, Broadcast(-2.12194440e-4f)));
#else
  const Packet r = Fma(m, Broadcast(-0.6931471805599453f), bounded);
#endif
  const Packet square = simd::pmul(r, r), cube = simd::pmul(square, r);
  Packet high = Fma(Broadcast(1.9875691500E-4f), r, Broadcast(1.3981999507E-3f));
  Packet low = Fma(Broadcast(4.1665795894E-2f), r, Broadcast(1.6666665459E-1f));
  high = Fma(high, r, Broadcast(8.3334519073E-3f));
  low = Fma(low, r, Broadcast(5.0000001201E-1f));
  const Packet sum = Fma(Fma(high, cube, low), square, simd::padd(r, Broadcast(1.0f)));
  return Max(simd::pmul(sum, PowerOfTwo(m)), x);
}

// Mish(x) = x tanh(log(1 + e^x)) = x (e^2 + 2e) / (e^2 + 2e + 2) with e = e^x. Above 20 the
// quotient is 1 in float32; NaN stays NaN.
inline Packet Mish(const Packet& x) {
  const Packet e = Exp(Min(x, Broadcast(20.0f)));
  const Packet n = simd::pmul(e, simd::padd(e, Broadcast(2.0f)));
  return simd::pmul(x, simd::pdiv(n, simd::padd(n, Broadcast(2.0f))));
}

}  // namespace mjp::cpu::MJP_ISA

#endif  // KERNELS_CPU_SIMD_H_
