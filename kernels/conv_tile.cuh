#ifndef KERNELS_CONV_TILE_CUH_
#define KERNELS_CONV_TILE_CUH_

#include "kernels/conv_gather.cuh"
#include "kernels/ptx.cuh"

// A warp's part of a tile by mma.sync: out channels (rows of a) times positions (rows of b), both
// swizzled in shared memory.

namespace dp {

// acc += 32 bytes of k of a's rows from `row_a` on times b's from `row_b` on; `step` of a stage.
template <Format F, int kMi, int kNi>
__device__ __forceinline__ void MultiplyStep(float (&acc)[kMi][kNi][4], uint32_t a, int row_a,
                                             uint32_t b, int row_b, int step) {
  const int lane = threadIdx.x & 31;
  uint32_t af[kMi][4];
#pragma unroll
  for (int i = 0; i < kMi; ++i)
    LoadMatrix4(af[i], Swizzled(a, row_a + i * 16 + (lane & 15), step * 2 + (lane >> 4)));
#pragma unroll
  for (int j = 0; j < kNi; j += 2) {
    uint32_t bf[4];
    const int row = row_b + j * 8 + (lane & 7) + ((lane >> 4) << 3);
    LoadMatrix4(bf, Swizzled(b, row, step * 2 + ((lane >> 3) & 1)));
    if constexpr (F == Format::kTf32) {
      for (uint32_t& r : bf) r = RoundTf32(r);
    }
#pragma unroll
    for (int i = 0; i < kMi; ++i) {
      MultiplyAccumulate<F>(acc[i][j], af[i], bf[0], bf[1]);
      MultiplyAccumulate<F>(acc[i][j + 1], af[i], bf[2], bf[3]);
    }
  }
}

// Writes the warp's sums as (position, out channel), `kPitch` floats from a position to the next.
template <int kPitch, int kMi, int kNi>
__device__ __forceinline__ void StoreSums(const float (&acc)[kMi][kNi][4], float* sums) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int i = 0; i < kMi; ++i)
#pragma unroll
    for (int j = 0; j < kNi; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        sums[(j * 8 + 2 * (lane & 3) + (q & 1)) * kPitch + i * 16 + (lane >> 2) + (q >> 1) * 8] =
            acc[i][j][q];
}

}  // namespace dp

#endif  // KERNELS_CONV_TILE_CUH_
