#ifndef KERNELS_CUDA_TMA_CONV_TMA_CONV_CUH_
#define KERNELS_CUDA_TMA_CONV_TMA_CONV_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"

namespace mjp::tma_conv {

// Microseconds that it takes, as measured; infinite where it does not run: it takes 16-bit formats,
// stride 1, channels in multiples of 64, no activation but ReLU, a GPU of compute capability 9.0.
double Time(Format format, const ConvArgs& args);

// Enqueues the convolution. Only where Time is finite.
void Launch(Format format, const ConvArgs& args, cudaStream_t stream);

}  // namespace mjp::tma_conv

#endif  // KERNELS_CUDA_TMA_CONV_TMA_CONV_CUH_
