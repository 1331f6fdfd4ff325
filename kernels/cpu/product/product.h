#ifndef KERNELS_CPU_PRODUCT_PRODUCT_H_
#define KERNELS_CPU_PRODUCT_PRODUCT_H_

#include <cstdint>

#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/features.h"

// The one matrix product behind every convolution and linear layer on the CPU:
//   y[position][o] = bias[o] + sum over k of patch(position)[k] w[k][o]
// where a patch is what the layer reads for one output position: with channel-last maps in a frame
// of zeros, one contiguous run of memory, or a few (one per kernel row of a 2-D convolution).
//
// Weights are packed into panels of PanelChannels() output channels, (panel, k, channel), and each
// is read once for up to 144 positions. A panel's piece of up to 256 k stays in the nearest cache
// while tiles of a few positions run over it, all sums of a tile in registers. Where many panels
// read the patches, they are interleaved first (interleave.h). Every element of y is the sum of the
// pieces' sums, each in the order of k: a fixed order, whatever the block, batch or threads.

namespace mjp::cpu {

// Output channels of a panel, for the active instruction set. Blocks start at multiples of it.
int PanelChannels();

// Weights (k, channels), packed.
struct PackedWeights {
  int depth = 0;     // number of k
  int channels = 0;  // of the output
  AlignedBuffer data;
};

// Where weights stand before they are packed: weight (tap, in, out) at
// source[tap * tap_stride + in * in_stride + out * out_stride].
struct WeightLayout {
  int taps = 1, in = 0, out = 0;
  int64_t tap_stride = 0, in_stride = 0, out_stride = 0;
};

// Packs weights for patches that hold (taps, in).
PackedWeights PackWeights(const float* source, const WeightLayout& layout);

struct ProductArgs {
  Features y = {};
  int columns = 0, column_step = 1;  // columns 0, column_step, ... of y are computed
  // patch of position (n, h, i): `segments` runs of segment_length floats from
  // x + n * x_batch + h * x_row + i * x_column, segment_stride apart
  const float* x = nullptr;
  int64_t x_batch = 0, x_row = 0, x_column = 0;
  int segments = 1, segment_length = 0;
  int64_t segment_stride = 0;
  const float* weights = nullptr;  // packed, of depth segments * segment_length
  const float* bias = nullptr;     // (channels) or null
};

// Computes `block` of the product.
void Product(const ProductArgs& args, const Block& block);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_PRODUCT_PRODUCT_H_
