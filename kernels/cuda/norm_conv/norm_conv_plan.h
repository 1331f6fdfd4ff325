#ifndef KERNELS_CUDA_NORM_CONV_NORM_CONV_PLAN_H_
#define KERNELS_CUDA_NORM_CONV_NORM_CONV_PLAN_H_

#include <cstddef>

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/shared/host_device.h"

// How a fused convolution is laid out on the device: what the host decides and the kernel follows.

namespace mjp {

inline constexpr int kFusedWarps = 8;
inline constexpr int kStepBytes = 32;       // of k, in one multiplication
inline constexpr int kFragmentBytes = 512;  // of 16 out channels and one step
inline constexpr int kChunkFragments = 4, kRingChunks = 3;
inline constexpr int kChunkBytes = kChunkFragments * kFragmentBytes;
inline constexpr int kFusedPack = 8;                     // channels that move together
inline constexpr int kFusedPacks = 4;                    // packs of a lane in one group
inline constexpr int kFusedMaxSplit = 8;                 // blocks of a portable cluster
inline constexpr int kFusedMaxSharedBytes = 227 * 1024;  // of a block, sm_90

// Where a block's input stands in shared memory: position l of row r is row left + r * period + l
// of `pitch` bytes. The gap behind a row is the padding of that row and of the next.
struct FusedLayout {
  int left, period, pitch;
};

struct FusedKernelArgs {
  FusedConvArgs a;
  FusedConvConfig config;
  int slice_channels;  // input channels of a block
  FusedLayout layout;
  int ring_chunks;   // of each warp's weights, at most kRingChunks
  int input_offset;  // bytes from the ring to the input
};

// Tiles of 16 out channels of a warp: two where that halves the reads of a wide input.
MJP_HOST_DEVICE constexpr int WarpTiles(int n_tiles, bool residual) {
  return (n_tiles == 4 || n_tiles == 8) && !residual ? 2 : 1;
}

// The kernel's arguments and its shared memory; `args` must be supported.
FusedKernelArgs PlanFusedConv(Format format, const FusedConvArgs& args, size_t* shared_bytes);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_NORM_CONV_PLAN_H_
