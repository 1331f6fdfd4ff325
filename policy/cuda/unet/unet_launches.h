#ifndef POLICY_CUDA_UNET_UNET_LAUNCHES_H_
#define POLICY_CUDA_UNET_UNET_LAUNCHES_H_

#include "policy/cuda/denoise/pass_launches.h"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/execution_plan.h"

namespace mjp {

// Places what `plan` says in `arena`; `weights` lie as it needs them. Throws Error for a shape that
// no kernel supports.
PassLaunches PlaceUnet(const DeviceWeights& weights, Format format, int horizon,
                       const ExecutionPlan& plan, DeviceArena& arena);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_UNET_LAUNCHES_H_
