#ifndef KERNELS_CUDA_PRIMITIVES_BLOCK_SUM_CUH_
#define KERNELS_CUDA_PRIMITIVES_BLOCK_SUM_CUH_

#include "kernels/cuda/primitives/device_math.cuh"

namespace mjp {

// Sum over the block, by a fixed tree, the same bits in every thread: of floats or float2.
// `partial`, in shared memory, holds 32 of them; the block is made of whole warps.
template <typename V>
__device__ __forceinline__ V BlockSum(V x, V* partial) {
  x = WarpSum(x);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  __syncthreads();
  if (lane == 0) partial[warp] = x;
  __syncthreads();
  return WarpSum(lane < warps ? partial[lane] : V());
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_BLOCK_SUM_CUH_
