#ifndef POLICY_CUDA_CUDA_POLICY_H_
#define POLICY_CUDA_CUDA_POLICY_H_

#include <memory>
#include <string>

#include "policy/policy.h"

namespace mjp {

// Whether this process can run the policy on a GPU; if not, `why` says what is missing. Never
// throws; works on a machine without a driver.
bool CudaUsable(std::string* why);

// Throws what says why it cannot: Error(kRetryable) where a second try helps, else kEnvironment.
// The text is `what`, a colon, the reason and `instead`.
void RequireCuda(const std::string& what, const std::string& instead);

// Makes the policy on the GPU; `options` are resolved but for the precision. Memory, launches and
// graphs come from a process-wide cache that outlives policies. Throws as RequireCuda without a
// usable device, Error(kBadInput) for a shape or option that no GPU kernel supports.
std::unique_ptr<Policy> CreateCudaPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                         const PolicyOptions& options);

}  // namespace mjp

#endif  // POLICY_CUDA_CUDA_POLICY_H_
