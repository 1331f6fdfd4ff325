#ifndef KERNELS_CUDA_TRANSFORMER_MMA_ATTENTION_PARTS_CUH_
#define KERNELS_CUDA_TRANSFORMER_MMA_ATTENTION_PARTS_CUH_

#include "kernels/cuda/primitives/device_math.cuh"

// What the attentions by mma.sync share.

namespace mjp {

constexpr float kLog2E = 1.44269504f;

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

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_MMA_ATTENTION_PARTS_CUH_
