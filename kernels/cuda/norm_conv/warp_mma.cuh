#ifndef KERNELS_CUDA_NORM_CONV_WARP_MMA_CUH_
#define KERNELS_CUDA_NORM_CONV_WARP_MMA_CUH_

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/ptx.cuh"

// What warps that multiply small convolutions have in common.

namespace mjp {

// Exponent of a power of two.
MJP_HOST_DEVICE __forceinline__ int Log2(int power) {
#ifdef __CUDA_ARCH__
  return 31 - __clz(power);
#else
  return 31 - __builtin_clz(power);
#endif
}

__device__ __forceinline__ void LoadFragment(uint32_t (&a)[4], uint32_t shared) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(shared)
               : "memory");
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
