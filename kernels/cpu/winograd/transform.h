#ifndef KERNELS_CPU_WINOGRAD_TRANSFORM_H_
#define KERNELS_CPU_WINOGRAD_TRANSFORM_H_

#include <cstdint>

// The additions around the products of kernels/cpu/winograd/winograd.h, compiled once per
// instruction set. Channels are multiples of kWinogradChannels.

namespace mjp::cpu {

// A tile: 2x4 outputs, of 4x6 inputs.
inline constexpr int kWinogradOutRows = 2, kWinogradOutColumns = 4;
inline constexpr int kWinogradRows = kWinogradOutRows + 2;
inline constexpr int kWinogradColumns = kWinogradOutColumns + 2;
inline constexpr int kWinogradOutputs = kWinogradOutRows * kWinogradOutColumns;
inline constexpr int kWinogradValues = kWinogradRows * kWinogradColumns;

// values[i * stride] (channels), i < kWinogradValues, of a tile's inputs x[kWinogradValues], each
// (channels), row by row.
void WinogradInput(const float* const* x, int channels, float* values, int64_t stride);

struct WinogradOutputArgs {
  const float* sums = nullptr;  // (kWinogradValues, channels), `stride` apart
  int64_t stride = 0;
  const float* bias = nullptr;                   // (channels)
  const float* residual[kWinogradOutputs] = {};  // each (channels), or null
  float* y[kWinogradOutputs] = {};               // each (channels), or null
  bool relu = false;
  int channels = 0;
};
void WinogradOutput(const WinogradOutputArgs& args);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_WINOGRAD_TRANSFORM_H_
