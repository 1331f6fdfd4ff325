#ifndef KERNELS_CPU_TRANSFORMER_LAYER_NORM_H_
#define KERNELS_CPU_TRANSFORMER_LAYER_NORM_H_

#include <cstdint>

// Layer normalisation of token rows, and the residual sum that follows a layer. A row is `width`
// floats; a matrix of rows has a pitch, the floats from one row to the next. What a row becomes
// depends on that row alone.

namespace mjp::cpu {

// y = (x - mean) / sqrt(variance + epsilon), with the biased variance; then
//   affine:    y = y weight + bias
//   modulated: y = y (1 + scale) + shift (AdaLN), where row r takes the terms of sequence
//              r / rows_per_sequence
struct LayerNormArgs {
  const float* x = nullptr;  // (rows, width)
  int64_t x_pitch = 0;
  float* y = nullptr;  // (rows, width); may be x
  int64_t y_pitch = 0;
  int width = 0;
  float epsilon = 1e-5f;
  const float *weight = nullptr, *bias = nullptr;  // (width), both or neither
  const float *scale = nullptr, *shift = nullptr;  // (sequences, modulation_pitch), both or neither
  int64_t modulation_pitch = 0;
  int rows_per_sequence = 1;
};

// Normalises rows [row_begin, row_end).
void LayerNorm(const LayerNormArgs& args, int row_begin, int row_end);

// y = y + gate x; without a gate y = y + x.
struct ResidualArgs {
  float* y = nullptr;  // (rows, width)
  int64_t y_pitch = 0;
  const float* x = nullptr;  // (rows, width)
  int64_t x_pitch = 0;
  int width = 0;
  const float* gate = nullptr;  // (sequences, gate_pitch), or null
  int64_t gate_pitch = 0;
  int rows_per_sequence = 1;
};

// Adds to rows [row_begin, row_end).
void AddResidual(const ResidualArgs& args, int row_begin, int row_end);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_TRANSFORMER_LAYER_NORM_H_
