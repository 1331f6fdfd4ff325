#ifndef POLICY_CUDA_SELF_CHECK_H_
#define POLICY_CUDA_SELF_CHECK_H_

#include <memory>
#include <string>

#include "base/error.h"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "policy/policy.h"

namespace mjp {

// What a check of the GPU at load found.
struct SelfCheck {
  double seconds = 0;  // that it took
  int rows = 0;        // environments that were compared
  double error = 0;    // largest difference between the actions, in units of x (half a range)
  double limit = 0;    // that the format may differ by: docs/NUMERICS.md
  bool weights_intact = true;  // the device holds what was uploaded
  bool Passed() const { return weights_intact && error <= limit; }  // NaN does not
};

// Decides once on a fixed observation with fixed noise and compares the actions. On the GPU: every
// kernel and launch that `options` choose, in as many environments alike as their batch has, at
// most 128, and in two denoising steps. With a window once more, in eight steps, of which the
// fallback of an abandoned window makes the last; then what is said is of these. On the CPU: one
// environment, step by step. `options` as resolved. Throws Error(kEnvironment) where a kernel
// faults (SelfCheckFault), OutOfDeviceMemory, Error(kBadInput) for a shape without a kernel.
SelfCheck RunSelfCheck(const std::shared_ptr<const Checkpoint>& checkpoint,
                       const PolicyOptions& options);

// The error of `fault`, a sentence, during the check: what the build holds, what the GPU is, and
// how to build for it.
Error SelfCheckFault(const std::string& fault, const GpuTraits& gpu);

// The same, once per process for a checkpoint and the options that choose kernels. Throws
// Error(kEnvironment) if the GPU computes other actions.
void RequireSelfCheck(const std::shared_ptr<const Checkpoint>& checkpoint,
                      const PolicyOptions& options);

}  // namespace mjp

#endif  // POLICY_CUDA_SELF_CHECK_H_
