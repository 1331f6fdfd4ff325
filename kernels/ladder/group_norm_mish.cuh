#ifndef KERNELS_LADDER_GROUP_NORM_MISH_CUH_
#define KERNELS_LADDER_GROUP_NORM_MISH_CUH_

#include <cuda_runtime_api.h>

// How GroupNorm with Mish became fast; the last rung is LaunchGroupNorm
// (kernels/cuda/norm/group_norm.cuh). Nothing but the bench and the tests uses the rungs.

namespace mjp::ladder {

// y = Mish(GN(x)) in float32, channels first; eps 1e-5, biased variance.
struct GroupNormMishArgs {
  int batch = 1, channels = 0, length = 0, groups = 8;
  const float* x = nullptr;                        // (batch, channels, length)
  const float *weight = nullptr, *bias = nullptr;  // (channels)
  float *mean = nullptr, *inverse = nullptr;       // (batch, groups): scratch of the first rung
  float* normalised = nullptr;                     // like x: scratch of the first rung
  float* y = nullptr;                              // like x
};

// Three launches: statistics, normalisation, Mish.
void GroupNormMishUnfused(const GroupNormMishArgs& args, cudaStream_t stream);
// One launch.
void GroupNormMishFused(const GroupNormMishArgs& args, cudaStream_t stream);

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_GROUP_NORM_MISH_CUH_
