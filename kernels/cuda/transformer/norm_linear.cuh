#ifndef KERNELS_CUDA_TRANSFORMER_NORM_LINEAR_CUH_
#define KERNELS_CUDA_TRANSFORMER_NORM_LINEAR_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/transformer/token_norm.cuh"
#include "kernels/shared/token_activation.h"

// The residual sum and norm of few short sequences and the linear layer behind it in one launch:
// what costs there is the number of launches.

namespace mjp {

struct NormLinearArgs {
  static constexpr int kMostRows = 32;  // of a sequence
  int sequences = 1, rows = 0;          // rows of each
  int in = 0, out = 0;  // in: a multiple of 128 up to 512, the norm's width; out: any
  // With terms. Its sum must not be its x; x_rows, normed and y are not read.
  TokenNormArgs norm;
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

// Whether it runs here: 16-bit formats, sequences and shapes as above.
bool NormLinearSupports(Format format, const NormLinearArgs& args);

// Enqueues it. `args` must be supported.
void LaunchNormLinear(Format format, const NormLinearArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_NORM_LINEAR_CUH_
