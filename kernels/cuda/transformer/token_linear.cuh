#ifndef KERNELS_CUDA_TRANSFORMER_TOKEN_LINEAR_CUH_
#define KERNELS_CUDA_TRANSFORMER_TOKEN_LINEAR_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"

// A transformer's linear layer over some hundreds of tokens: too few for the tiles of a convolution
// of many positions, too many for a launch whose time is the launch.

namespace mjp {

// Whether it runs here: 16-bit formats, 33 to 1024 rows, in and out in multiples of 64, wgmma,
// neither a residual nor a ReLU after it.
bool TokenLinearSupports(Format format, const ConvArgs& args);

// Enqueues it. `args`, of a linear layer, must be supported.
void LaunchTokenLinear(Format format, const ConvArgs& args, cudaStream_t stream);

// Enqueues any linear layer or convolution: here where it is supported, else by LaunchConv.
void LaunchLinear(Format format, const ConvArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_TOKEN_LINEAR_CUH_
