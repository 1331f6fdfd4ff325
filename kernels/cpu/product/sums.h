#ifndef KERNELS_CPU_PRODUCT_SUMS_H_
#define KERNELS_CPU_PRODUCT_SUMS_H_

#include "kernels/cpu/simd.h"

// The inner loop of every product on the CPU, for sources compiled once per instruction set
// (kernels/cpu/simd.h).

namespace mjp::cpu::MJP_ISA {

inline constexpr int kPanel = 2 * kLanes;                             // output channels of a panel
inline constexpr int kTile = kLanes >= 16 ? 8 : kLanes >= 8 ? 6 : 4;  // positions of a tile
inline constexpr int kPiece = 256;  // k whose weights stay in cache; the bits depend on it

// What the sums of P positions read: patches where they stand, and interleaved ones (interleave.h).
template <int P>
struct Rows {
  const float* row[P];
  [[gnu::always_inline]] float At(int p, int k) const { return row[p][k]; }
};
template <int P>
struct InterleavedRows {
  const float* data;  // (k, P)
  [[gnu::always_inline]] float At(int p, int k) const { return data[k * P + p]; }
};

// sum[p] += x.At(p, k) weights, for one k.
template <int P, class X>
[[gnu::always_inline]] inline void Add(const X& x, int k, const float* weights,
                                       Packet (&sum)[P][2]) {
  const Packet w0 = simd::pload<Packet>(weights), w1 = simd::pload<Packet>(weights + kLanes);
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    const Packet value = Broadcast(x.At(p, k));
    sum[p][0] = Fma(value, w0, sum[p][0]);
    sum[p][1] = Fma(value, w1, sum[p][1]);
  }
}

// sum[p] = sum over k < length of x.At(p, k) weights[k], in the order of k; all in registers.
template <int P>
[[gnu::always_inline]] inline void Sum(const Rows<P>& x, int length, const float* weights,
                                       Packet (&sum)[P][2]) {
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) sum[p][0] = sum[p][1] = Broadcast(0.0f);
  for (int k = 0; k < length; ++k) Add(x, k, weights + k * kPanel, sum);
}
template <int P>
[[gnu::always_inline]] inline void Sum(const InterleavedRows<P>& x, int length,
                                       const float* weights, Packet (&sum)[P][2]) {
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) sum[p][0] = sum[p][1] = Broadcast(0.0f);
#pragma GCC unroll 4
  for (int k = 0; k < length; ++k) Add(x, k, weights + k * kPanel, sum);
}

}  // namespace mjp::cpu::MJP_ISA

#endif  // KERNELS_CPU_PRODUCT_SUMS_H_
