#ifndef KERNELS_CUDA_CONV_IMPLICIT_GEMM_WGMMA_CUH_
#define KERNELS_CUDA_CONV_IMPLICIT_GEMM_WGMMA_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"

// The convolution of many positions, bound by arithmetic: Hopper's warpgroup products.

namespace mjp {

// How a shape runs. Depends on the shape and the GPU alone.
struct WgmmaConvConfig {
  int block_m = 128, block_n = 64;  // positions x out channels of a block; 0: not supported
  int split_k = 1;                  // blocks of a cluster that share one tile's sum
  bool one_cta_per_sm = false;      // at most: a deeper ring
};

// Chooses by a count of the products that the busiest multiprocessor makes.
WgmmaConvConfig ChooseWgmmaConvConfig(const ConvShape& shape, const GpuTraits& gpu);

// Whether this convolution runs here (16-bit formats, enough positions, out channels in multiples
// of 64, a GPU of compute capability 9.0); otherwise the general kernel takes it.
bool WgmmaConvSupports(Format format, const ConvArgs& args);

// Enqueues the convolution. `args` must be supported.
void LaunchWgmmaConv(Format format, const ConvArgs& args, cudaStream_t stream);

// The same for the 32-bit formats (kernels/cuda/conv/implicit_gemm_wgmma_tf32.cu).
bool WgmmaTf32ConvSupports(Format format, const ConvArgs& args);
void LaunchWgmmaTf32Conv(Format format, const ConvArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_IMPLICIT_GEMM_WGMMA_CUH_
