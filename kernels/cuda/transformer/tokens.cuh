#ifndef KERNELS_CUDA_TRANSFORMER_TOKENS_CUH_
#define KERNELS_CUDA_TRANSFORMER_TOKENS_CUH_

#include <cuda_runtime_api.h>

#include "kernels/shared/format.h"

namespace mjp {

// One token of a sequence: weight values + bias.
struct VectorToken {
  int in = 0;                     // values; 0: the bias alone
  const float* weight = nullptr;  // (in, width)
  const float* bias = nullptr;    // (width)
  const float* values = nullptr;  // (sequences, in)
};

// Puts a transformer's input together: tokens of vectors, then those of one or more maps.
struct TokensArgs {
  static constexpr int kMostVectors = 3;
  int sequences = 0, width = 0;
  int vectors = 0;
  VectorToken vector[kMostVectors];
  int maps = 0, cells = 0;           // of each map
  const void* map = nullptr;         // (maps, sequences, cells, width), storage
  const float* positions = nullptr;  // (tokens, width), added; or null
  float* x = nullptr;                // (sequences, Tokens(), width)
  void* y = nullptr;                 // the same in storage; null: not kept

  int Tokens() const { return vectors + maps * cells; }
};
void LaunchTokens(Format format, const TokensArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_TOKENS_CUH_
