#ifndef KERNELS_CUDA_CONV_STEM_MAX_POOL_CUH_
#define KERNELS_CUDA_CONV_STEM_MAX_POOL_CUH_

#include "kernels/cuda/conv/conv.cuh"

// ResNet's stem in one launch: convolution, bias, ReLU, and the 3x3 maximum of stride 2 behind it.
// The convolution's map is four times the pooled one and never leaves shared memory.

namespace mjp {

struct StemMaxPoolArgs {
  ConvArgs conv;                   // its y is not written
  int pooled_h = 0, pooled_w = 0;  // half of its map, rounded up
  void* y = nullptr;               // (batch, pooled_h, pooled_w, 64), storage type
};

// Whether it runs here: 16-bit formats, the 7x7 convolution of stride 2 over space-to-depth pixels
// (4x4 taps of 16 channels, padding 2) to 64 channels with a ReLU, compute capability 9.0.
bool StemMaxPoolSupports(Format format, const ConvArgs& conv);

// Enqueues it. `args` must be supported.
void LaunchStemMaxPool(Format format, const StemMaxPoolArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_STEM_MAX_POOL_CUH_
