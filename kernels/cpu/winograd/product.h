#ifndef KERNELS_CPU_WINOGRAD_PRODUCT_H_
#define KERNELS_CPU_WINOGRAD_PRODUCT_H_

#include <cstdint>

// The products of kernels/cpu/winograd/winograd.h, compiled once per instruction set: as those of
// kernels/cpu/product/product.h, with the same bits, for rows that follow each other.

namespace mjp::cpu {

struct WinogradProductArgs {
  const float* values = nullptr;  // (value_count, tiles, depth), values value_stride apart
  int64_t value_stride = 0;
  int value_count = 0;
  int tiles = 0, depth = 0;
  const float* weights = nullptr;  // (value_count, panels, depth, panel)
  // (value_count, tiles, channels), with room for whole panels; values are sum_stride and tiles
  // sum_pitch apart
  float* sums = nullptr;
  int64_t sum_stride = 0, sum_pitch = 0;
  int channels = 0;
};
// Not watched by AddressSanitizer: the caller checks the ranges (product/checked_range.h).
void WinogradProduct(const WinogradProductArgs& args);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_WINOGRAD_PRODUCT_H_
