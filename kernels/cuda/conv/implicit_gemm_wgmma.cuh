#ifndef KERNELS_CUDA_CONV_IMPLICIT_GEMM_WGMMA_CUH_
#define KERNELS_CUDA_CONV_IMPLICIT_GEMM_WGMMA_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"

// The convolution of hundreds of positions and more, and linear layers of tokens: Hopper's
// warpgroup products.

namespace mjp {

// How a shape runs. Depends on the shape alone.
struct WgmmaConvConfig {
  int block_m = 64, block_n = 64;  // positions x out channels of a block
  int stages = 4;                  // of its ring
  int split_k = 1;                 // blocks of a cluster that share one tile's sum
};

// Chooses what ends first by measured times of each tile. `shape` has out channels in multiples of
// 64.
WgmmaConvConfig ChooseWgmmaConvConfig(const ConvShape& shape);

// What that takes on an H100 by these times, microseconds.
double MeasuredWgmmaConvTime(const ConvShape& shape);

// Whether this convolution runs here: 16-bit formats, from 256 positions or 33 tokens on, out
// channels in multiples of 64, a GPU of compute capability 9.0. Otherwise the general kernel takes
// it.
bool WgmmaConvSupports(Format format, const ConvArgs& args);

// Enqueues the convolution. `args` must be supported.
void LaunchWgmmaConv(Format format, const ConvArgs& args, cudaStream_t stream);

// The same for the 32-bit formats (kernels/cuda/conv/implicit_gemm_wgmma_tf32.cu).
bool WgmmaTf32ConvSupports(Format format, const ConvArgs& args);
void LaunchWgmmaTf32Conv(Format format, const ConvArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_IMPLICIT_GEMM_WGMMA_CUH_
