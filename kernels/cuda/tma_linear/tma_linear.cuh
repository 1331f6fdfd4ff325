#ifndef KERNELS_CUDA_TMA_LINEAR_TMA_LINEAR_CUH_
#define KERNELS_CUDA_TMA_LINEAR_TMA_LINEAR_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/tma_linear/plan.h"

// Linear layers of some hundreds of tokens by TMA with multicast, for GPUs of compute capability
// 9.0.

namespace mjp::tma_linear {

// A LayerNorm between two layers, done in their epilogues, as CUTLASS does (example 37,
// gemm_layernorm_gemm_fusion). The layer before it leaves the residual stream's rows v, v times the
// norm's weights as the operand of the layer after it, and moments of v: mean and sum of squared
// differences from it of each 32 channels, (tokens, width / 32), x and y of a float2. The layer
// after it corrects its sums:
//   W norm(v) = scale (W (weight v) - mean W weight) + W bias.

// The norm that x has yet to pass.
struct InputNorm {
  const float2* moments = nullptr;     // of x's rows; null: none
  const float* weight_sums = nullptr;  // (out_c): W weight, of W as stored. The layer's bias: with
                                       // W bias
  float epsilon = 1e-5f;
};

// The residual stream to which a layer adds: sum = x + layer, or norm(x) + layer where it is normed
// after the sub-layers. The layer's y is sum times next_weight; it has no activation.
struct ResidualStream {
  const float* x = nullptr;         // (x_rows, out_c): token n reads row n % x_rows; null: none
  int x_rows = 0;                   // 0: as many as tokens
  const float2* moments = nullptr;  // of x's rows; null: x is not normed
  const float *weight = nullptr, *bias = nullptr;  // (out_c), of that norm
  float epsilon = 1e-5f;
  float* sum = nullptr;                // (tokens, out_c); may be x, where x_rows is 0
  const float* next_weight = nullptr;  // (out_c), of the norm after the sum
  float2* next_moments = nullptr;      // of the sum's rows; not `moments`, which others still read
};

struct LayerArgs {
  ConvArgs conv;
  InputNorm norm;         // at most one of both
  ResidualStream stream;  // then conv has no row_bias, activation, residual or ReLU
};

// Whether any layer runs here: 16-bit formats, a GPU of compute capability 9.0.
bool Runs(Format format);

// Microseconds that it takes, as measured; infinite where it does not run: it takes shapes that
// MakePlan takes, where Runs. For streams and norms of inputs, channels in multiples of 64 besides.
double Time(Format format, const ConvArgs& args);

// Enqueues y = act(x W^T + bias + row_bias) (+ residual, ReLU), or what LayerArgs says. Only where
// Time is finite. Throws Error where the driver or the launch refuses it.
void Launch(Format format, const ConvArgs& args, cudaStream_t stream);
void Launch(Format format, const LayerArgs& args, cudaStream_t stream);

// The same by one of Plans(args.conv, args.stream.x != nullptr), for measurements and tests.
void LaunchPlan(Format format, const LayerArgs& args, const Plan& plan, cudaStream_t stream);

}  // namespace mjp::tma_linear

#endif  // KERNELS_CUDA_TMA_LINEAR_TMA_LINEAR_CUH_
