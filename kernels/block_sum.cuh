#ifndef KERNELS_BLOCK_SUM_CUH_
#define KERNELS_BLOCK_SUM_CUH_

#include "kernels/device_math.cuh"

namespace dp {

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

}  // namespace dp

#endif  // KERNELS_BLOCK_SUM_CUH_
