#ifndef KERNELS_CUDA_NORM_CONV_NORM_CONV_CUH_
#define KERNELS_CUDA_NORM_CONV_NORM_CONV_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/shared/format.h"

// The one-dimensional convolution of small batches, where a pass is bound by weight bytes and the
// latency between layers: it reads raw outputs of the layer before, normalises and activates them
// on the way in, and streams its weights over all multiprocessors while that layer still runs.

namespace mjp {

// A range of input channels: ready activations, or raw convolution outputs whose GN, Mish, FiLM
// and residual the reader applies.
struct FusedSource {
  const void* x = nullptr;  // (rows, length, channels), storage
  int channels = 0;
  int group_channels = 0;  // of a group; 0: ready
  const float *weight = nullptr, *bias = nullptr;
  FilmArgs film;
  const void* residual = nullptr;  // like x, added last; or null
  void* ready = nullptr;           // like x: where the activated values are kept; or null
};

// Lengths are powers of two. taps 1, 3 or 5 of stride 1 or 2; or phases 2 with taps 2: transposed
// k4 s2 p1.
struct FusedConvShape {
  int rows = 1, in_length = 1, out_length = 1;  // out_length: of one phase
  int in_c = 0, out_c = 0;
  int taps = 1, stride = 1, pad = 0, phases = 1;
  bool residual = false;  // the block's 1x1 convolution of the same input beside this one
};

struct FusedConvArgs {
  FusedConvShape shape;
  FusedSource source[2];         // channels in order; the second may be empty
  const void* weight = nullptr;  // packed by PackFusedWeights
  const float *bias = nullptr, *residual_bias = nullptr;
  void *y = nullptr, *residual_y = nullptr;  // (rows, out_length * phases, out_c)
};

// How a shape runs. Depends on the shape and the groups alone.
struct FusedConvConfig {
  int block_m = 64;    // out channels of a block
  int block_rows = 1;  // rows of a block
  int n_tiles = 1;     // tiles of 8 positions of a block
  int split_k = 1;     // blocks of a cluster, each with its share of the input channels
};

// Whether a warp holds a group of this source in its registers.
bool FusedSourceSupports(const FusedSource& source, int length);
// Whether the fused kernel runs this convolution; otherwise LaunchConv and LaunchGroupNorm do.
bool FusedConvSupports(Format format, const FusedConvArgs& args);

// Enqueues the convolution. `args` must be supported.
void LaunchFusedConv(Format format, const FusedConvArgs& args, cudaStream_t stream);

// Weights (out, in, taps), or (in, out, 4) where phases = 2, and the 1x1 (out, in) or null, in the
// order of the tensor cores' fragments: [phase][out / 16][in block][tap, 1x1][lane][16 bytes].
std::vector<uint8_t> PackFusedWeights(Format format, const FusedConvShape& shape,
                                      const float* weight, const float* residual);
// Bytes that PackFusedWeights returns.
size_t PackedFusedBytes(Format format, const FusedConvShape& shape);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_NORM_CONV_CUH_
