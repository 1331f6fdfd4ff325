#ifndef KERNELS_CUDA_PRIMITIVES_DEVICE_MATH_CUH_
#define KERNELS_CUDA_PRIMITIVES_DEVICE_MATH_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/shared/activation.h"
#include "kernels/shared/format.h"

// Storage types of the formats, conversions, activations and sums within a warp.

namespace mjp {

template <Format F>
struct StorageOf {
  using Type = float;
};
template <>
struct StorageOf<Format::kFp16> {
  using Type = __half;
};
template <>
struct StorageOf<Format::kBf16> {
  using Type = __nv_bfloat16;
};
template <Format F>
using Storage = typename StorageOf<F>::Type;

__device__ __forceinline__ float ToFloat(float x) { return x; }
__device__ __forceinline__ float ToFloat(__half x) { return __half2float(x); }
__device__ __forceinline__ float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T>
__device__ __forceinline__ T FromFloat(float x) {
  return x;
}
template <>
__device__ __forceinline__ __half FromFloat<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 FromFloat<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// V consecutive elements moved as one access.
template <typename T, int V>
struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack {
  T v[V];
};
template <typename T>
__device__ __forceinline__ Pack<T, 4> PackFour(const float4& x) {
  Pack<T, 4> four;
  four.v[0] = FromFloat<T>(x.x), four.v[1] = FromFloat<T>(x.y);
  four.v[2] = FromFloat<T>(x.z), four.v[3] = FromFloat<T>(x.w);
  return four;
}
template <>
__device__ __forceinline__ Pack<__half, 4> PackFour<__half>(const float4& x) {
  const __half2 low = __floats2half2_rn(x.x, x.y), high = __floats2half2_rn(x.z, x.w);
  return {{__low2half(low), __high2half(low), __low2half(high), __high2half(high)}};
}
template <typename T>
__device__ __forceinline__ float4 UnpackFour(const Pack<T, 4>& four) {
  return make_float4(ToFloat(four.v[0]), ToFloat(four.v[1]), ToFloat(four.v[2]),
                     ToFloat(four.v[3]));
}

// x tanh(log(1 + e^x)) = x (e^2 + 2e) / (e^2 + 2e + 2) with e = e^x; x itself above 20.
__device__ __forceinline__ float Mish(float x) {
  const float e = expf(fminf(x, 20.0f));
  const float n = e * (e + 2.0f);
  return x > 20.0f ? x : x * __fdiv_rn(n, n + 2.0f);
}
// The same as x - 2x / (e^2 + 2e + 2) by the fast units; its error, 1e-7 of x, is far below half
// precision's own. Where the sum is infinite its reciprocal is zero.
__device__ __forceinline__ float MishFast(float x) {
  constexpr float kLog2E = 1.44269504f;
  const float e = FastExp2(x * kLog2E);
  return x - 2.0f * x * FastReciprocal(e * (e + 2.0f) + 2.0f);
}

template <typename T>
__device__ __forceinline__ float Activate(float x, Activation a) {
  if (a == Activation::kRelu) return fmaxf(x, 0.0f);
  if (a == Activation::kMish) return sizeof(T) == 4 ? Mish(x) : MishFast(x);
  return x;
}

// Sum over the warp, the same bits in every lane.
__device__ __forceinline__ float WarpSum(float x) {
  for (int mask = 16; mask > 0; mask >>= 1) x += __shfl_xor_sync(0xffffffffu, x, mask);
  return x;
}
__device__ __forceinline__ float2 WarpSum(float2 x) {
  return make_float2(WarpSum(x.x), WarpSum(x.y));
}
__device__ __forceinline__ int WarpMin(int x) {
  for (int mask = 16; mask > 0; mask >>= 1) x = min(x, __shfl_xor_sync(0xffffffffu, x, mask));
  return x;
}
__device__ __forceinline__ float WarpMax(float x) {
  for (int mask = 16; mask > 0; mask >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, mask));
  return x;
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_DEVICE_MATH_CUH_
