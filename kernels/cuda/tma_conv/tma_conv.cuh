#ifndef KERNELS_CUDA_TMA_CONV_TMA_CONV_CUH_
#define KERNELS_CUDA_TMA_CONV_TMA_CONV_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"

namespace mjp::tma_conv {

// Whether this convolution runs here and ends earlier than by `other_time` microseconds: 16-bit
// formats, stride 1, channels in multiples of 64, no activation but ReLU, a GPU of compute
// capability 9.0.
bool Supports(Format format, const ConvArgs& args, double other_time);

// Enqueues the convolution. `args` must be supported.
void Launch(Format format, const ConvArgs& args, cudaStream_t stream);

}  // namespace mjp::tma_conv

#endif  // KERNELS_CUDA_TMA_CONV_TMA_CONV_CUH_
