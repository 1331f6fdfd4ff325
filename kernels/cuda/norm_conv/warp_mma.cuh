#ifndef KERNELS_CUDA_NORM_CONV_WARP_MMA_CUH_
#define KERNELS_CUDA_NORM_CONV_WARP_MMA_CUH_

#include "kernels/cuda/norm_conv/norm_conv_plan.h"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/ptx.cuh"

// The mma of small convolutions: a warp multiplies consecutive fragments of weights, which come
// from a ring, with positions in shared memory.

namespace mjp {

// Exponent of a power of two.
MJP_HOST_DEVICE __forceinline__ int Log2(int power) {
#ifdef __CUDA_ARCH__
  return 31 - __clz(power);
#else
  return 31 - __builtin_clz(power);
#endif
}

// Accumulators of a warp. With few position tiles, k steps alternate between sets, since an mma
// waits for the one before that has its accumulators.
template <int MI, int NT, bool kShortcut>
struct Accumulators {
  static constexpr int kSets = MI > 1 || NT > 2 ? 1 : NT == 1 ? 4 : 2;
  float main[kSets][MI][NT][4] = {};
  float shortcut[kShortcut ? MI : 1][kShortcut ? NT : 1][4] = {};
};

// One step: the fragment in `a` times all position tiles.
template <Format F, int NT>
__device__ __forceinline__ void MmaStep(float (&acc)[NT][4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[(NT + 1) / 2][4]) {
#pragma unroll
  for (int j = 0; j < NT; ++j)
    MultiplyAccumulate<F>(acc[j], a, b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
}

__device__ __forceinline__ void LoadFragment(uint32_t (&a)[4], uint32_t shared) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(shared)
               : "memory");
}

// a / b for 0 <= a < 8192 and 1 <= b <= 8, without a division.
__device__ __forceinline__ int DivideSmall(int a, int b) {
  const uint32_t reciprocal = b == 1   ? 65536
                              : b == 2 ? 32768
                              : b == 3 ? 21846
                              : b == 4 ? 16384
                              : b == 5 ? 13108
                              : b == 6 ? 10923
                              : b == 7 ? 9363
                                       : 8192;
  return static_cast<int>((static_cast<uint32_t>(a) * reciprocal) >> 16);
}

// All `steps` of a warp, beginning with step `begin` of the block's (channel block, tap) order.
// `rows` are this lane's addresses in each pair of position tiles. A ring has Read(), the shared
// address of its next chunk of kChunkFragments fragments for this lane, Issue(), which issues the
// copy of the next one, and kPending, the chunks under way while one is read.
template <Format F, int MI, int NT, bool kShortcut, typename Ring>
__device__ __forceinline__ void MmaAllSteps(Accumulators<MI, NT, kShortcut>& acc, Ring& weights,
                                            int steps, int begin,
                                            const uint32_t (&rows)[(NT + 1) / 2],
                                            const NormConvShape& s, int pitch) {
  using Acc = Accumulators<MI, NT, kShortcut>;
  const int taps = s.taps + kShortcut;
  int block = DivideSmall(begin, taps), tap = begin - block * taps;
  for (int left = steps; left > 0;) {
    WaitCopies<Ring::kPending>();
    const uint32_t chunk = weights.Read();
#pragma unroll
    for (int i = 0; i < kChunkFragments / MI; ++i) {
      const bool shortcut = kShortcut && tap == s.taps;
      const uint32_t offset = block * kStepBytes + (shortcut ? s.pad : tap) * pitch;
      uint32_t a[MI][4], b[(NT + 1) / 2][4];
#pragma unroll
      for (int m = 0; m < MI; ++m) LoadFragment(a[m], chunk + (i * MI + m) * kFragmentBytes);
#pragma unroll
      for (int j = 0; j < (NT + 1) / 2; ++j) LoadMatrix4(b[j], rows[j] + offset);
#pragma unroll
      for (int m = 0; m < MI; ++m) {
        if constexpr (kShortcut) {
          if (shortcut) {
            MmaStep<F, NT>(acc.shortcut[m], a[m], b);
          } else {
            MmaStep<F, NT>(acc.main[i % Acc::kSets][m], a[m], b);
          }
        } else {
          MmaStep<F, NT>(acc.main[i % Acc::kSets][m], a[m], b);
        }
      }
      // the last chunk's empty steps stay where there is input
      if (--left > 0 && ++tap == taps) tap = 0, ++block;
    }
    weights.Issue();
  }
#pragma unroll
  for (int set = 1; set < Acc::kSets; ++set)
#pragma unroll
    for (int j = 0; j < NT; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) acc.main[0][0][j][q] += acc.main[set][0][j][q];
}

// Puts one warp's accumulators where its CTA adds them: accumulators[position][pitch].
template <int NT>
__device__ __forceinline__ void PutAccumulators(const float (&acc)[NT][4], float* accumulators,
                                                int pitch, int m, int lane) {
#pragma unroll
  for (int j = 0; j < NT; ++j)
#pragma unroll
    for (int q = 0; q < 4; ++q)
      accumulators[(j * 8 + 2 * (lane & 3) + (q & 1)) * pitch + m + (lane >> 2) + (q >> 1) * 8] =
          acc[j][q];
}

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_WARP_MMA_CUH_
