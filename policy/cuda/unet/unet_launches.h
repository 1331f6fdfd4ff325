#ifndef POLICY_CUDA_UNET_UNET_LAUNCHES_H_
#define POLICY_CUDA_UNET_UNET_LAUNCHES_H_

#include <memory>

#include "policy/cuda/device_weights.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/unet/megakernel_launch.h"
#include "policy/cuda/unet/unet_pass.h"

namespace mjp {

// The U-Net in the one form that runs it: a pass of launches, or whole chains in the megakernel.
// The fallback, where windows of steps are evaluated, is the same with one row per environment.
struct UnetLaunches {
  std::unique_ptr<UnetPass> pass, pass_fallback;  // or
  std::unique_ptr<MegakernelLaunch> megakernel, megakernel_fallback;

  const FilmConditioning& conditioning() const {
    return megakernel ? megakernel->conditioning() : pass->conditioning();
  }
};

// Places what `plan` says in `arena`; `weights` lie as it needs them. Throws Error for a shape that
// no kernel supports.
UnetLaunches PlaceUnet(const DeviceWeights& weights, Format format, int horizon,
                       const ExecutionPlan& plan, DeviceArena& arena);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_UNET_LAUNCHES_H_
