#ifndef KERNELS_CPU_WINOGRAD_TRANSFORM_H_
#define KERNELS_CPU_WINOGRAD_TRANSFORM_H_

#include <cstdint>

// The additions around the products of kernels/cpu/winograd/winograd.h, compiled once per
// instruction set. Channels are multiples of kWinogradChannels.

namespace mjp::cpu {

// values[i * stride] (channels), i < 24, of the 4x6 inputs x[24], each (channels), row by row.
void WinogradInput(const float* const* x, int channels, float* values, int64_t stride);

struct WinogradOutputArgs {
  const float* sums = nullptr;  // (24, channels), `stride` apart
  int64_t stride = 0;
  const float* bias = nullptr;    // (channels)
  const float* residual[8] = {};  // each (channels), or null
  float* y[8] = {};               // 2x4 outputs, each (channels), or null
  bool relu = false;
  int channels = 0;
};
void WinogradOutput(const WinogradOutputArgs& args);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_WINOGRAD_TRANSFORM_H_
