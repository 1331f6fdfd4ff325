#ifndef KERNELS_CUDA_TRANSFORMER_TOKEN_NORM_CUH_
#define KERNELS_CUDA_TRANSFORMER_TOKEN_NORM_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/shared/format.h"

// What stands between the linear layers of a transformer: the residual sum of the layer before, and
// the norm of the layer after. The residual stream is float32 in every format.

namespace mjp {

// AdaLN's terms (Peebles and Xie 2023): row r belongs to sequence r / rows_per_sequence, whose
// vector of terms is of_time[time[sequence]] + of_condition[sequence / sequences_per_condition].
struct TokenTerms {
  const float* of_condition = nullptr;  // (conditioning vectors, pitch); null: the norm is affine
  const float* of_time = nullptr;       // (times, pitch)
  const int* time = nullptr;            // (sequences)
  int64_t pitch = 0;
  int rows_per_sequence = 1, sequences_per_condition = 1;
  int gate = 0, shift = 0, scale = 0;  // where they stand in the vector
};

// v = x + branch, or x + gate branch with terms; then
//   norm = (v - mean) / sqrt(variance + epsilon) weight + bias, or (1 + scale) + shift with terms,
// and with second_weight y is the norm of that.
struct TokenNormArgs {
  int rows = 0, width = 0;       // width: a multiple of 8, at most 2048
  const float* x = nullptr;      // (x_rows, width): row r reads row r % x_rows
  int x_rows = 0;                // 0: as many as rows
  int64_t x_pitch = 0;           // from one row of x to the next; 0: width. Then x is not written
  const void* branch = nullptr;  // (rows, width), storage; null: v = x
  bool normalize = true;         // else norm = v
  float epsilon = 1e-5f;
  const float *weight = nullptr, *bias = nullptr;                // (width); null with terms
  const float *second_weight = nullptr, *second_bias = nullptr;  // (width); not with terms
  TokenTerms terms;
  float* sum = nullptr;     // (rows, width): v; may be x; null: not kept
  float* normed = nullptr;  // (rows, width): norm; may be x; null: not kept
  void* y = nullptr;        // (rows, width), storage: norm, or the second one; null: not kept
};

// Throws Error for a width that no kernel supports.
void LaunchTokenNorm(Format format, const TokenNormArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_TOKEN_NORM_CUH_
