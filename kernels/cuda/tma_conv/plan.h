#ifndef KERNELS_CUDA_TMA_CONV_PLAN_H_
#define KERNELS_CUDA_TMA_CONV_PLAN_H_

#include <optional>

#include "kernels/cuda/conv/conv.cuh"

// Which tiles the convolution by TMA makes of a shape. Depends on the shape alone.

namespace mjp::tma_conv {

constexpr int kPositions = 256;   // of a warpgroup's tile: columns of its products
constexpr int kWarpgroups = 2;    // that multiply
constexpr int kSliceBytes = 128;  // of channels: a row in shared memory
constexpr int kSliceChannels = 64;
constexpr int kMostSlots = 6;  // of a ring, each with two barriers
constexpr int kBarrierBytes = 16;
constexpr int kStagingBytes = 8 * 1024;  // of the epilogues
constexpr int kAlignment = 1024;         // of the swizzle

// A tile is `rows` x `width` positions of one map. What its taps read, its patch, is `pitch`
// columns wide, so position (y, x) of the tile is row y pitch + x of its products; those from
// `width` on in a row are nobody's.
struct Plan {
  int maps = 1, height = 1, map_width = 1;  // the output as the kernel sees it
  int channels = 128;                       // out channels of a block: 64 for each of its
                                            // warpgroups, or the same 64 of two tiles for both
  int rows = 1, width = kPositions, pitch = kPositions;
  int bands = 1, columns = 1;  // tiles of a map, down and across
  int slices = 1;              // of 64 in channels
  int patch_rows = 1;          // rows of shared memory of a patch that the copy fills
  int slot_rows = kPositions;  // and those that its slot has, since the last positions read on
  int patch_slots = 4, weight_slots = 4;

  int Tiles() const { return maps * bands * columns; }
  int ChannelTiles(int out_c) const { return out_c / channels; }
  // Tiles that a block makes at once.
  int TilesAtOnce() const { return channels == kSliceChannels ? kWarpgroups : 1; }
  int Units(int out_c) const {
    return (Tiles() + TilesAtOnce() - 1) / TilesAtOnce() * ChannelTiles(out_c);
  }
  size_t SharedBytes() const;
};

// The plan of `args`, or none where it is not a convolution of stride 1 with channels in multiples
// of 64, or its patches do not fit.
std::optional<Plan> MakePlan(const ConvArgs& args);

// Microseconds on an H100, by measured times of a tile.
double MeasuredTime(const Plan& plan, const ConvShape& shape);

}  // namespace mjp::tma_conv

#endif  // KERNELS_CUDA_TMA_CONV_PLAN_H_
