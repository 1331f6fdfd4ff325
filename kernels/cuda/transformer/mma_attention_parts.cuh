#ifndef KERNELS_CUDA_TRANSFORMER_MMA_ATTENTION_PARTS_CUH_
#define KERNELS_CUDA_TRANSFORMER_MMA_ATTENTION_PARTS_CUH_

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/fragments.cuh"

// What the attentions by mma.sync share.

namespace mjp {

constexpr float kLog2E = 1.44269504f;

// Two tiles of a product's result as the left side of the next one, 16 of k.
template <typename T>
__device__ __forceinline__ void ToOperand(uint32_t (&a)[4], const float (&low)[4],
                                          const float (&high)[4]) {
  a[0] = PackTwo(T{}, low[0], low[1]), a[1] = PackTwo(T{}, low[2], low[3]);
  a[2] = PackTwo(T{}, high[0], high[1]), a[3] = PackTwo(T{}, high[2], high[3]);
}

// Over the four lanes that share a row of a product's result.
__device__ __forceinline__ float QuadMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float QuadSum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// The largest of a lane's scores of each row, those of keys from `keys` on out of the way.
template <int kTiles>
__device__ __forceinline__ void FindLargest(float (&largest)[2], float (&scores)[kTiles][4],
                                            int keys) {
  const int first = 2 * (static_cast<int>(threadIdx.x) & 3);
  if (keys < kTiles * 8) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (j * 8 + first + (e & 1) >= keys) scores[j][e] = -INFINITY;
  }
  largest[0] = largest[1] = -INFINITY;
#pragma unroll
  for (int j = 0; j < kTiles; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) largest[e >> 1] = fmaxf(largest[e >> 1], scores[j][e]);
}

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_MMA_ATTENTION_PARTS_CUH_
