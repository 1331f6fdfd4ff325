#ifndef KERNELS_CUDA_NORM_CONV_GROUP_NORM_CUH_
#define KERNELS_CUDA_NORM_CONV_GROUP_NORM_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"

// A convolution with the group normalisation behind it in one launch: for few pictures, where the
// number of launches is what costs, and for many where a whole picture fits into a block
// (kernels/cuda/norm/conv_group_norm_resident.cuh).

namespace mjp {

// y = GN(conv(x)), then + residual, then ReLU, by the fields of `conv`; eps 1e-5, biased variance
// over a picture's positions and a group's channels. Not for concatenated inputs or phases, biases
// of positions or tokens' activations.
struct ConvGroupNormArgs {
  ConvArgs conv;
  int groups = 8;
  const float *weight = nullptr, *bias = nullptr;  // of the normalisation, (out_c)
};

// How a shape runs. Depends on the shape alone.
struct ConvGroupNormConfig {
  int block_m = 16, block_n = 16;  // out channels x positions of a block; block_m 0: not supported
  int slices = 1;                  // of a picture's positions; a cluster is slices x split_k blocks
  int split_k = 1;
};
ConvGroupNormConfig ChooseConvGroupNormConfig(const ConvShape& shape);

// Whether a kernel takes it: 16-bit formats, few pictures of at most 640 positions, groups of 4,
// 8 or 16 channels, a GPU with clusters; or what ResidentConvGroupNormSupports says.
bool ConvGroupNormSupports(Format format, const ConvGroupNormArgs& args);

// Enqueues both. `args` must be supported.
void LaunchConvGroupNorm(Format format, const ConvGroupNormArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_GROUP_NORM_CUH_
