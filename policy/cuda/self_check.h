#ifndef POLICY_CUDA_SELF_CHECK_H_
#define POLICY_CUDA_SELF_CHECK_H_

#include <memory>

#include "policy/policy.h"

namespace mjp {

// What a check of the GPU at load found.
struct SelfCheck {
  double seconds = 0;  // that it took
  double error = 0;    // largest difference between the actions, in units of x (half a range)
  double limit = 0;    // that the format may differ by: docs/NUMERICS.md
  bool weights_intact = true;  // the device holds what was uploaded
  bool Passed() const { return weights_intact && error <= limit; }  // NaN does not
};

// Decides once on a fixed observation with fixed noise, on the GPU through the kernels that
// `options` choose but in two denoising steps, and on the CPU, and compares the actions. `options`
// as resolved. Throws Error where the GPU cannot.
SelfCheck RunSelfCheck(const std::shared_ptr<const Checkpoint>& checkpoint,
                       const PolicyOptions& options);

// The same, once per process for a checkpoint and the options that choose kernels. Throws
// Error(kEnvironment) if the GPU computes other actions.
void RequireSelfCheck(const std::shared_ptr<const Checkpoint>& checkpoint,
                      const PolicyOptions& options);

}  // namespace mjp

#endif  // POLICY_CUDA_SELF_CHECK_H_
