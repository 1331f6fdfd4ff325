#ifndef KERNELS_CUDA_CONV_EPILOGUE_CUH_
#define KERNELS_CUDA_CONV_EPILOGUE_CUH_

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/transformer/token_activation.cuh"

// What the convolutions' epilogues do for the linear layers of transformers.

namespace mjp {

// Whether the layer has a bias of each position or an activation of its own. Kernels by wgmma are
// compiled for both answers: asked for each value, it cost encoders of 32 frames 6 %.
inline bool IsOfTransformer(const ConvArgs& a) {
  return a.row_bias != nullptr || a.activation != TokenActivation::kNone;
}

// The bias of position `n` alone; null: none.
__device__ __forceinline__ const float* RowBias(const ConvArgs& a, int n) {
  return a.row_bias == nullptr ? nullptr
                               : a.row_bias + static_cast<size_t>(n % a.row_period) * a.shape.out_c;
}

// The sum of out channel `m` with its bias, and with those of its position and the activation.
__device__ __forceinline__ float AddBiasAndActivate(const ConvArgs& a, float sum,
                                                    const float* row_bias, int m) {
  if (row_bias != nullptr) sum += row_bias[m];
  return a.activation == TokenActivation::kNone ? sum : ActivateToken(a.activation, sum);
}

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_EPILOGUE_CUH_
