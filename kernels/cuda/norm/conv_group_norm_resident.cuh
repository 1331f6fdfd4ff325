#ifndef KERNELS_CUDA_NORM_CONV_GROUP_NORM_RESIDENT_CUH_
#define KERNELS_CUDA_NORM_CONV_GROUP_NORM_RESIDENT_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/norm/conv_group_norm.cuh"

// The convolution with its group normalisation for many pictures of 64 channels, as in the first
// stage of a ResNet: a picture's whole map stays in one multiprocessor.

namespace mjp {

// Whether this convolution runs here: 16-bit formats, more pictures than few, 3x3 of stride 1 from
// 64 to 64 channels without bias, 289 to 576 positions, groups of a multiple of 8 channels, a GPU
// of compute capability 9.0.
bool ResidentConvGroupNormSupports(Format format, const ConvGroupNormArgs& args);

// Enqueues both. `args` must be supported.
void LaunchResidentConvGroupNorm(Format format, const ConvGroupNormArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_GROUP_NORM_RESIDENT_CUH_
