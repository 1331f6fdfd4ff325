#ifndef KERNELS_CUDA_NORM_GROUP_NORM_MAX_POOL_CUH_
#define KERNELS_CUDA_NORM_GROUP_NORM_MAX_POOL_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/norm/pool.cuh"

namespace mjp {

// What follows a picture encoder's first convolution: y = max-pool(ReLU(GN(x))), eps 1e-5, biased
// variance over a frame's positions and a group's channels.
struct GroupNormMaxPoolArgs {
  MaxPoolArgs pool;  // shapes, x and y
  int groups = 4;
  const float *weight = nullptr, *bias = nullptr;  // (channels)
};

// Whether one launch does it: groups of a multiple of 8 channels that fit into shared memory.
bool GroupNormMaxPoolSupports(Format format, const GroupNormMaxPoolArgs& args);

// Enqueues it. `args` must be supported.
void LaunchGroupNormMaxPool(Format format, const GroupNormMaxPoolArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_GROUP_NORM_MAX_POOL_CUH_
