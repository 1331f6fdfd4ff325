#ifndef KERNELS_LADDER_GROUP_SUM_CUH_
#define KERNELS_LADDER_GROUP_SUM_CUH_

#include "kernels/cuda/primitives/device_math.cuh"

namespace mjp::ladder {

inline constexpr int kNormThreads = 128;
inline constexpr float kNormEpsilon = 1e-5f;

struct GroupStatistics {
  float mean, inverse;  // inverse of the standard deviation
};

// Sum over the block, in every thread.
__device__ __forceinline__ float BlockSum(float x) {
  __shared__ float partial[kNormThreads / 32];
  x = WarpSum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0;
  for (const float p : partial) sum += p;
  return sum;
}

// Of the `count` values at x, by the whole block; x is read twice.
__device__ __forceinline__ GroupStatistics Statistics(const float* x, int count) {
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < count; i += kNormThreads) sum += x[i];
  const float mean = BlockSum(sum) / count;
  for (int i = threadIdx.x; i < count; i += kNormThreads) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, rsqrtf(BlockSum(squares) / count + kNormEpsilon)};
}

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_GROUP_SUM_CUH_
