#ifndef POLICY_CUDA_UNET_UNET_PLANS_H_
#define POLICY_CUDA_UNET_UNET_PLANS_H_

#include <string>

#include "base/json.h"
#include "policy/checkpoint/network.h"

namespace mjp {

// The execution plans of a U-Net's policy with its own sampler on the GPU called `gpu`, one for
// each of some numbers of environments. Throws Error for an unknown GPU.
Json UnetPlans(const Checkpoint& checkpoint, const std::string& gpu);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_UNET_PLANS_H_
