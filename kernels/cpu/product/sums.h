#ifndef KERNELS_CPU_PRODUCT_SUMS_H_
#define KERNELS_CPU_PRODUCT_SUMS_H_

#include "kernels/cpu/simd.h"

// The inner loop of every product on the CPU, for sources compiled once per instruction set
// (kernels/cpu/simd.h).

namespace mjp::cpu::MJP_ISA {

inline constexpr int kPanel = 2 * kLanes;                             // output channels of a panel
inline constexpr int kTile = kLanes >= 16 ? 8 : kLanes >= 8 ? 6 : 4;  // positions of a tile
inline constexpr int kPiece = 256;  // k whose weights stay in cache; the bits depend on it

// sum[p] = sum over k < length of rows[p][k] weights[k], in the order of k; all in registers.
template <int P>
[[gnu::always_inline]] inline void Sum(const float* const (&rows)[P], int length,
                                       const float* weights, Packet (&sum)[P][2]) {
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) sum[p][0] = sum[p][1] = Broadcast(0.0f);
  for (int k = 0; k < length; ++k, weights += kPanel) {
    const Packet w0 = simd::pload<Packet>(weights), w1 = simd::pload<Packet>(weights + kLanes);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      const Packet value = Broadcast(rows[p][k]);
      sum[p][0] = Fma(value, w0, sum[p][0]);
      sum[p][1] = Fma(value, w1, sum[p][1]);
    }
  }
}

}  // namespace mjp::cpu::MJP_ISA

#endif  // KERNELS_CPU_PRODUCT_SUMS_H_
