#ifndef KERNELS_CPU_FEATURES_H_
#define KERNELS_CPU_FEATURES_H_

#include <cstdint>

// Views that the CPU kernels work on. Members are always inlined: a copy out of line, compiled for
// one instruction set, could be called on a processor without it.

namespace mjp::cpu {

// A batch of feature maps, channel-last: (batch, height, width, channels). A sequence is a map of
// height 1. Each map stands in a frame of zeros, halo_y rows and halo_x columns wide, so that a
// convolution reads its padding as ordinary memory; no kernel writes the halo.
struct Features {
  float* data = nullptr;  // first channel of element (0, 0, 0)
  int batch = 0, height = 1, width = 0, channels = 0;
  int pitch = 0;  // floats from one column to the next; > channels inside a concatenation
  int halo_y = 0, halo_x = 0;

  [[gnu::always_inline]] int64_t RowStride() const { return int64_t{width + 2 * halo_x} * pitch; }
  [[gnu::always_inline]] int64_t BatchStride() const { return (height + 2 * halo_y) * RowStride(); }
  [[gnu::always_inline]] int64_t Offset(int n, int y, int x) const {
    return n * BatchStride() + y * RowStride() + int64_t{x} * pitch;
  }
  [[gnu::always_inline]] float* At(int n, int y, int x) const { return data + Offset(n, y, x); }
  // Channels [first, first + count) of the same maps.
  [[gnu::always_inline]] Features Slice(int first, int count) const {
    Features slice = *this;
    slice.data += first;
    slice.channels = count;
    return slice;
  }
};

// The part of a layer's output that one call computes. What an element becomes does not depend on
// the block it is computed in.
struct Block {
  int batch_begin = 0, batch_end = 0;
  int channel_begin = 0, channel_end = 0;
};

// Everything of `y`.
inline Block WholeBlock(const Features& y) { return {0, y.batch, 0, y.channels}; }

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_FEATURES_H_
