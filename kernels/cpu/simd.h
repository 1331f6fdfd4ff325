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

namespace mjp::cpu::MJP_ISA {

namespace simd = ::Eigen::internal;

using Packet = simd::packet_traits<float>::type;
inline constexpr int kLanes = simd::packet_traits<float>::size;

inline Packet Load(const float* p) { return simd::ploadu<Packet>(p); }
inline void Store(float* p, const Packet& v) { simd::pstoreu(p, v); }
inline Packet Broadcast(float v) { return simd::pset1<Packet>(v); }

// Mish(x) = x tanh(log(1 + e^x)) = x (e^2 + 2e) / (e^2 + 2e + 2) with e = e^x. Above 20 the
// quotient is 1 in float32; NaN stays NaN.
inline Packet Mish(const Packet& x) {
  const Packet e = simd::pexp(simd::pmin(x, Broadcast(20.0f)));
  const Packet n = simd::pmul(e, simd::padd(e, Broadcast(2.0f)));
  return simd::pmul(x, simd::pdiv(n, simd::padd(n, Broadcast(2.0f))));
}

}  // namespace mjp::cpu::MJP_ISA

#endif  // KERNELS_CPU_SIMD_H_
