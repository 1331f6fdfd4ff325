#ifndef KERNELS_LADDER_DENOISE_CUH_
#define KERNELS_LADDER_DENOISE_CUH_

#include <cuda_runtime_api.h>

#include "kernels/shared/denoise.h"

// How the DDPM step became fast; the last rung is LaunchDenoise (kernels/cuda/sampler/denoise.cuh).
// Nothing but the bench and the tests uses the rungs.

namespace mjp::ladder {

// x' of the step at `timestep`: the network predicts the noise, x0 is clamped to +-1, betas by the
// squared cosine, variance "fixed small".
struct DenoiseArgs {
  int count = 0;  // values
  int timestep = 0, timesteps = 100;
  const DenoiseStep* table = nullptr;  // (timesteps) by timestep: of the second rung
  const float *x = nullptr, *output = nullptr, *noise = nullptr;  // (count)
  float *x0 = nullptr, *mean = nullptr;                           // (count): of the first rung
  float* next = nullptr;                                          // (count)
};

// Four launches, constants from the formula.
void DenoiseStraight(const DenoiseArgs& args, cudaStream_t stream);
// One launch, constants from a table.
void DenoiseTable(const DenoiseArgs& args, cudaStream_t stream);

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_DENOISE_CUH_
