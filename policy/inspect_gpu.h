#ifndef POLICY_INSPECT_GPU_H_
#define POLICY_INSPECT_GPU_H_

#include <string>

#include "base/json_forward.h"
#include "policy/checkpoint/network.h"

namespace mjp {

// How a policy runs on the GPU called `gpu`, for some numbers of environments: an array of objects.
// Throws Error for an unknown GPU, and where this build has no CUDA form of such a policy.
Json ExecutionJson(const Checkpoint& checkpoint, const std::string& gpu);
// The same as lines of text; empty for an empty name.
std::string ExecutionTable(const Checkpoint& checkpoint, const std::string& gpu);

}  // namespace mjp

#endif  // POLICY_INSPECT_GPU_H_
