#ifndef KERNELS_CUDA_CONV_IMPLICIT_GEMM_MMA_CUH_
#define KERNELS_CUDA_CONV_IMPLICIT_GEMM_MMA_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"

// The convolution of any shape and format on any GPU, by mma.sync.

namespace mjp {

// Enqueues the convolution, as ChooseConvConfig says. `args` as LaunchConv has checked them.
void LaunchMmaConv(Format format, const ConvArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_IMPLICIT_GEMM_MMA_CUH_
