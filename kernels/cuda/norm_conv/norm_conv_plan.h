#ifndef KERNELS_CUDA_NORM_CONV_NORM_CONV_PLAN_H_
#define KERNELS_CUDA_NORM_CONV_NORM_CONV_PLAN_H_

#include <cstddef>

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/shared/host_device.h"

// How a norm_conv runs on the device: what the host decides and the kernel follows.

namespace mjp {

inline constexpr int kNormConvWarps = 8;
inline constexpr int kStepBytes = 32;       // of k, in one multiplication
inline constexpr int kFragmentBytes = 512;  // of 16 out channels and one k step
inline constexpr int kChunkFragments = 4, kRingChunks = 3;
inline constexpr int kChunkBytes = kChunkFragments * kFragmentBytes;
inline constexpr int kPackChannels = 8;    // channels that move together
inline constexpr int kLanePacks = 4;       // packs of a lane in one group
inline constexpr int kMaxClusterCtas = 8;  // of a portable cluster

// A CTA's input in shared memory: position l of row r is at halo + r * period + l, `pitch` bytes
// each. The gap behind a row is the zero padding of that row and of the next.
struct InputLayout {
  int halo, period, pitch;
};

struct NormConvKernelArgs {
  NormConvArgs a;
  NormConvConfig config;
  int slice_channels;  // of a CTA's K slice
  InputLayout layout;
  int ring_chunks;   // of each warp's weights, at most kRingChunks
  int input_offset;  // bytes from the ring to the input
};

// Tiles of 16 out channels of a warp: two where that halves the reads of a wide input.
MJP_HOST_DEVICE constexpr int WarpTiles(int n_tiles, bool shortcut) {
  return (n_tiles == 4 || n_tiles == 8) && !shortcut ? 2 : 1;
}

// The kernel's arguments and its shared memory; `args` must be supported.
NormConvKernelArgs PlanNormConv(Format format, const NormConvArgs& args, size_t* shared_bytes);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_NORM_CONV_PLAN_H_
