#ifndef KERNELS_CUDA_PRIMITIVES_BLOCK_SUM_CUH_
#define KERNELS_CUDA_PRIMITIVES_BLOCK_SUM_CUH_

#include "kernels/cuda/primitives/device_math.cuh"

namespace mjp {

// Sum over the block, by a fixed tree, the same bits in every thread. `partial`, in shared memory,
// holds 32 floats; the block is made of whole warps.
__device__ __forceinline__ float BlockSum(float x, float* partial) {
  x = WarpSum(x);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  __syncthreads();
  if (lane == 0) partial[warp] = x;
  __syncthreads();
  return WarpSum(lane < warps ? partial[lane] : 0.0f);
}

// The same of two values each.
__device__ __forceinline__ float2 BlockSum(float2 x, float2* partial) {
  x = make_float2(WarpSum(x.x), WarpSum(x.y));
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  __syncthreads();
  if (lane == 0) partial[warp] = x;
  __syncthreads();
  const float2 mine = lane < warps ? partial[lane] : make_float2(0.0f, 0.0f);
  return make_float2(WarpSum(mine.x), WarpSum(mine.y));
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_BLOCK_SUM_CUH_
