#ifndef KERNELS_CUDA_SAMPLER_HOLD_PREFIX_CUH_
#define KERNELS_CUDA_SAMPLER_HOLD_PREFIX_CUH_

#include <cuda_runtime_api.h>

namespace mjp {

// Puts what is known of every chunk in the place of x: see kernels/shared/held_element.h.
struct HoldPrefixArgs {
  bool whole = false;  // all elements of a chunk that has a known beginning, else this alone
  int environments = 0, elements = 0;  // elements = horizon * action_dim of one environment
  float sqrt_a = 1, sqrt_1ma = 0;
  const float* clean = nullptr;  // (environments, elements), normalised
  const int* held = nullptr;     // (environments): elements that are known, from the first on
  const float* start = nullptr;  // (environments, elements): x where the chain begins
  float* x = nullptr;            // (environments, elements)
};
void LaunchHoldPrefix(const HoldPrefixArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_HOLD_PREFIX_CUH_
