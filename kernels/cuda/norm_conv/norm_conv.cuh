#ifndef KERNELS_CUDA_NORM_CONV_NORM_CONV_CUH_
#define KERNELS_CUDA_NORM_CONV_NORM_CONV_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/shared/format.h"

// The one-dimensional convolution of small batches, with the normalisation of its input as
// prologue. A pass is bound by weight bytes and the latency between layers: a launch reads the raw
// output of the layer before, normalises and activates it on the way in, and prefetches its weights
// over all multiprocessors while that layer still runs.

namespace mjp {

// A range of input channels: materialised activations, or a raw convolution output, whose
// GroupNorm, Mish, FiLM and residual the reader applies.
struct NormConvSource {
  const void* x = nullptr;  // (rows, length, channels), storage
  int channels = 0;
  int group_channels = 0;  // of a norm group; 0: materialised
  const float *weight = nullptr, *bias = nullptr;
  FilmArgs film;
  const void* residual = nullptr;  // like x, added last; or null
  void* materialized = nullptr;    // like x: where the reader stores the activations; or null
};

// Lengths are powers of two. taps 1, 3 or 5 of stride 1 or 2; or phases 2 with taps 2: transposed
// k4 s2 p1.
struct NormConvShape {
  int rows = 1, in_length = 1, out_length = 1;  // out_length: of one phase
  int in_c = 0, out_c = 0;
  int taps = 1, stride = 1, pad = 0, phases = 1;
  bool shortcut = false;  // and the block's 1x1 convolution of the same input
};

struct NormConvArgs {
  NormConvShape shape;
  NormConvSource source[2];      // channels in order; the second may be empty
  const void* weight = nullptr;  // packed by PackWeightFragments
  const float *bias = nullptr, *shortcut_bias = nullptr;
  void *y = nullptr, *shortcut_y = nullptr;  // (rows, out_length * phases, out_c)
};

// How a shape runs; depends on the shape and the groups alone.
struct NormConvConfig {
  int block_m = 64;    // out channels of a CTA
  int block_rows = 1;  // rows of a CTA
  int n_tiles = 1;     // tiles of 8 positions of a CTA
  int split_k = 1;     // CTAs of a cluster, each with its K slice
};

// Whether a warp holds a group of this source in its registers.
bool NormConvSourceSupports(const NormConvSource& source, int length);
// Whether this kernel runs the convolution; otherwise LaunchConv and LaunchGroupNorm do.
bool NormConvSupports(Format format, const NormConvArgs& args);

// Enqueues the convolution. `args` must be supported.
void LaunchNormConv(Format format, const NormConvArgs& args, cudaStream_t stream);

// Weights (out, in, taps), or (in, out, 4) where phases = 2, and the 1x1 (out, in) or null, in the
// order of the tensor cores' fragments: [phase][out / 16][in block][tap, 1x1][lane][16 bytes].
std::vector<uint8_t> PackWeightFragments(Format format, const NormConvShape& shape,
                                         const float* weight, const float* shortcut);
// Bytes that PackWeightFragments returns.
size_t WeightFragmentBytes(Format format, const NormConvShape& shape);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_NORM_CONV_CUH_
