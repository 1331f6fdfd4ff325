#ifndef KERNELS_CPU_WINOGRAD_WINOGRAD_H_
#define KERNELS_CPU_WINOGRAD_WINOGRAD_H_

#include "kernels/cpu/features.h"
#include "kernels/cpu/product/product.h"
#include "kernels/cpu/winograd/transform.h"

// Convolutions of 3x3, stride 1 and padding 1 by Winograd's minimal filtering F(2x4, 3x3) (Lavin
// and Gray 2016): 24 products for eight outputs, where the plain sum takes 72. A tile of 4x6 inputs
// is turned into 24 values, each is multiplied by its own weights, and the 24 sums over the input
// channels are turned into 2x4 outputs. Points: down 0, 1 and -1, across also 1/2 and -2, which
// round less than 2 and -2.
//
// What an output becomes depends on its tile alone: neither on the block, nor the threads, nor the
// instruction set. It is not the bits of Convolve: the sums have another order.

namespace mjp::cpu {

// A layer ready to run. Immutable; shared between threads.
struct WinogradLayer {
  int in = 0, out = 0;         // channels, multiples of kWinogradChannels
  AlignedBuffer weights = {};  // packed, in the order in which they are read
  AlignedBuffer bias = {};     // (out)
  AlignedBuffer zeros = {};    // (in): what tiles read beyond the frame of a map
};
inline constexpr int kWinogradChannels = 16;

// weight (out, in, 3, 3); bias (out). The weights are turned in double precision, then rounded.
WinogradLayer MakeWinograd(const float* weight, const float* bias, int out, int in);

struct WinogradArgs {
  const WinogradLayer* layer = nullptr;
  Features x = {};         // its halo is at least 1
  Features y = {};         // of the size of x, with the layer's channels
  Features residual = {};  // of the size of y, added to the sums; data null: none
  bool relu = false;       // max(sum, 0) at the end

  // 2x4 outputs each, the last ones of a row or column cut off where they do not divide the size.
  int TileColumns() const { return (y.width + kWinogradOutColumns - 1) / kWinogradOutColumns; }
  int TilesOfMap() const {
    return (y.height + kWinogradOutRows - 1) / kWinogradOutRows * TileColumns();
  }
};

// Floats of scratch that a thread needs.
size_t WinogradScratch(const WinogradLayer& layer);

// What one call computes: tiles of y, counted map by map and row by row, and their channels.
struct WinogradBlock {
  int tile_begin = 0, tile_end = 0;
  int channel_begin = 0, channel_end = 0;  // begin: a multiple of kWinogradChannelsAtOnce
};
inline constexpr int kWinogradChannelsAtOnce = 32;  // whose sums stay in cache

// The block of one of `threads` equal threads, of the first `maps` maps. Each reads all weights of
// its channels: few tiles are not divided, but their channels, where there are many.
WinogradBlock BlockOfThread(const WinogradArgs& args, int maps, int thread, int threads);

void WinogradConvolve(const WinogradArgs& args, const WinogradBlock& block, float* scratch);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_WINOGRAD_WINOGRAD_H_
