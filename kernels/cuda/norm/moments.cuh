#ifndef KERNELS_CUDA_NORM_MOMENTS_CUH_
#define KERNELS_CUDA_NORM_MOMENTS_CUH_

#include "kernels/cuda/primitives/ptx.cuh"

// Moments of a norm group from those of its parts.

namespace mjp {

// What the norm needs to know of a part of a norm group: how many values, their mean, and the sum
// of squared differences from it.
struct __align__(16) Moment {
  float count, mean, squares, unused;
};

// Moments of several parts together (Chan, Golub and LeVeque 1979). Differences from the first
// part's mean lose no digits where the mean is large.
struct Gathered {
  float pilot, count = 0.0f, sum = 0.0f, squares = 0.0f;

  __device__ __forceinline__ void Add(const Moment& m) {
    const float difference = m.mean - pilot, sum_of_part = m.count * difference;
    count += m.count, sum += sum_of_part;
    squares += __fmaf_rn(sum_of_part, difference, m.squares);
  }
  __device__ __forceinline__ Moment All() const {
    const float mean = sum * FastReciprocal(fmaxf(count, 1.0f));
    return {count, pilot + mean, fmaxf(__fmaf_rn(-sum, mean, squares), 0.0f), 0.0f};
  }
};

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_MOMENTS_CUH_
