#ifndef POLICY_CUDA_DENOISE_PASS_LAUNCHES_H_
#define POLICY_CUDA_DENOISE_PASS_LAUNCHES_H_

#include <memory>

#include "policy/cuda/denoise/network_pass.h"
#include "policy/cuda/unet/megakernel_launch.h"

namespace mjp {

// A denoising network in the one form that runs it: a pass of launches, or whole chains in the
// megakernel. The fallback, where windows of steps are evaluated, is the same with one row per
// environment.
struct PassLaunches {
  std::unique_ptr<NetworkPass> pass, pass_fallback;  // or
  std::unique_ptr<MegakernelLaunch> megakernel, megakernel_fallback;

  const FilmConditioning& conditioning() const {
    return megakernel ? megakernel->conditioning() : pass->conditioning();
  }
};

}  // namespace mjp

#endif  // POLICY_CUDA_DENOISE_PASS_LAUNCHES_H_
