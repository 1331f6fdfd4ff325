#ifndef KERNELS_CPU_PRODUCT_TILE_H_
#define KERNELS_CPU_PRODUCT_TILE_H_

#include <cstdint>

#include "kernels/cpu/product/sums.h"

// The inner loop of kernels/cpu/product/product.h, compiled once per instruction set
// (kernels/cpu/simd.h).

namespace mjp::cpu::MJP_ISA {

// One panel for a tile of up to kTile positions, over a piece of k.
struct TileArgs {
  const float* const* x = nullptr;  // (positions), each read from offset to offset + length
  int64_t offset = 0;
  const float* interleaved = nullptr;  // (length, positions): the same, read in place of x
  int length = 0;
  const float* weights = nullptr;  // (length, kPanel), aligned to a register
  const float* before = nullptr;   // (kPanel) that the sums are added to; null: to y itself
  int64_t channel = 0;             // of y that the panel begins with
  int channels = 0;                // of the panel that y has
  float* const* y = nullptr;       // (positions)
};

// Nothing here is watched by AddressSanitizer: the caller checks the ranges (checked_range.h).
void ComputeTile(const TileArgs& args, int positions);

}  // namespace mjp::cpu::MJP_ISA

#endif  // KERNELS_CPU_PRODUCT_TILE_H_
