#ifndef KERNELS_CUDA_TRANSFORMER_SHORT_LINEAR_CUH_
#define KERNELS_CUDA_TRANSFORMER_SHORT_LINEAR_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/transformer/attention.cuh"
#include "kernels/cuda/transformer/token_norm.cuh"
#include "kernels/shared/token_activation.h"

// A linear layer of few short sequences with what stands before it in the same launch: what costs
// there is the number of launches.

namespace mjp {

// What the layer's input is.
enum class ShortInput {
  kRows,       // rows in storage
  kNorm,       // TokenNormArgs: rows of a residual sum and its norm
  kAttention,  // the attention of rows that hold q, k and v side by side
};

struct ShortLinearArgs {
  static constexpr int kMostRows = 32;  // of a sequence
  ShortInput kind = ShortInput::kRows;
  int sequences = 1, rows = 0;   // rows of each
  int in = 0, out = 0;           // in: a multiple of 128; out: any
  const void* x = nullptr;       // (sequences * rows, in), or with attention (.., 3 in), storage
  TokenNormArgs norm;            // kNorm; its sum must not be its x, and y and normed are not read
  int heads = 0;                 // kAttention; heads of 32 or 64
  const void* weight = nullptr;  // (out, in) as PackConvWeights packs a linear layer
  const float* bias = nullptr;   // (out)
  TokenActivation activation = TokenActivation::kNone;
  // Rotary embedding of the first rotary_columns columns of y, whose neighbours 2 i and 2 i + 1 of
  // a head are the pair i: (rows, rotary_head / 2) cosines and sines; null: none.
  const float *cosines = nullptr, *sines = nullptr;
  int rotary_columns = 0, rotary_head = 0;
  void* y = nullptr;  // (sequences * rows, out) in storage, or in float32
  bool y_fp32 = false;
};

// Whether it runs here: 16-bit formats, sequences and shapes as above, enough shared memory.
bool ShortLinearSupports(Format format, const ShortLinearArgs& args, const GpuTraits& gpu);

// Enqueues it. `args` must be supported.
void LaunchShortLinear(Format format, const ShortLinearArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_SHORT_LINEAR_CUH_
