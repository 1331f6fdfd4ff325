#ifndef KERNELS_CUDA_PRIMITIVES_FRAGMENTS_CUH_
#define KERNELS_CUDA_PRIMITIVES_FRAGMENTS_CUH_

#include "kernels/cuda/primitives/device_math.cuh"

// Fragments of 16-bit matrices on their way between registers and shared memory.

namespace mjp {

// LoadMatrix4 with every matrix transposed.
__device__ __forceinline__ void LoadTransposed4(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

__device__ __forceinline__ uint32_t PackTwo(__half, float a, float b) {
  const __half2 two = __floats2half2_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&two);
}
__device__ __forceinline__ uint32_t PackTwo(__nv_bfloat16, float a, float b) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&two);
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_FRAGMENTS_CUH_
