#ifndef KERNELS_CUDA_TRANSFORMER_TOKEN_ACTIVATION_CUH_
#define KERNELS_CUDA_TRANSFORMER_TOKEN_ACTIVATION_CUH_

#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/shared/token_activation.h"

namespace mjp {

// x / (1 + e^-x); NaN stays NaN.
__device__ __forceinline__ float SiluToken(float x) { return __fdiv_rn(x, 1.0f + expf(-x)); }

// The activation in float32, within 3e-7 + 1e-6 |y| of its definition; NaN stays NaN.
__device__ __forceinline__ float ActivateToken(TokenActivation activation, float x) {
  switch (activation) {
    case TokenActivation::kNone:
      return x;
    case TokenActivation::kRelu:
      return x < 0.0f ? 0.0f : x;
    case TokenActivation::kGeluErf:
      return 0.5f * x * erfcf(x * -0.707106781f);
    case TokenActivation::kGeluTanh: {
      // 1 + tanh(u) = 2 / (1 + e^-2u)
      const float u = 0.797884561f * (x + 0.044715f * x * x * x);
      return __fdiv_rn(x, 1.0f + expf(-2.0f * u));
    }
    case TokenActivation::kQuickGelu:
      return __fdiv_rn(x, 1.0f + expf(-1.702f * x));
    case TokenActivation::kSilu:
      return SiluToken(x);
  }
  return x;
}

// x / (1 + e^-rate x) by the fast units, for results of 16 bits: within 1e-6 (1 + |y|) of it; NaN
// stays NaN.
__device__ __forceinline__ float SigmoidFast(float x, float rate) {
  constexpr float kLog2E = 1.44269504f;
  return x * FastReciprocal(1.0f + FastExp2(-kLog2E * rate * x));
}
// GELU's tanh form likewise.
__device__ __forceinline__ float GeluTanhFast(float x) {
  constexpr float kLog2E = 1.44269504f;
  const float u = 0.797884561f * (x + 0.044715f * x * x * x);
  return x * FastReciprocal(1.0f + FastExp2(-2.0f * kLog2E * u));
}

// The activation for results of 16 bits.
template <TokenActivation kActivation>
__device__ __forceinline__ float ActivateTokenFast(float x) {
  if constexpr (kActivation == TokenActivation::kGeluTanh) return GeluTanhFast(x);
  if constexpr (kActivation == TokenActivation::kQuickGelu) return SigmoidFast(x, 1.702f);
  if constexpr (kActivation == TokenActivation::kSilu) return SigmoidFast(x, 1.0f);
  return ActivateToken(kActivation, x);
}

// The activation of several values, for results of type T.
template <TokenActivation kActivation, typename T, int kCount>
__device__ __forceinline__ void ActivateEach(float (&x)[kCount]) {
#pragma unroll
  for (float& v : x)
    v = sizeof(T) == 2 ? ActivateTokenFast<kActivation>(v) : ActivateToken(kActivation, v);
}

// Calls run<activation>(), compiled for each.
template <typename Run>
__device__ __forceinline__ void ForActivation(TokenActivation activation, const Run& run) {
  switch (activation) {
    case TokenActivation::kNone:
      return run.template operator()<TokenActivation::kNone>();
    case TokenActivation::kRelu:
      return run.template operator()<TokenActivation::kRelu>();
    case TokenActivation::kGeluErf:
      return run.template operator()<TokenActivation::kGeluErf>();
    case TokenActivation::kGeluTanh:
      return run.template operator()<TokenActivation::kGeluTanh>();
    case TokenActivation::kQuickGelu:
      return run.template operator()<TokenActivation::kQuickGelu>();
    case TokenActivation::kSilu:
      return run.template operator()<TokenActivation::kSilu>();
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_TOKEN_ACTIVATION_CUH_
