#ifndef POLICY_INPUT_CHECK_H_
#define POLICY_INPUT_CHECK_H_

#include <span>

#include "policy/policy.h"

namespace mjp {

// Throws Error(kBadInput) unless the spans of `input` have the sizes that `checkpoint` and
// input.count ask for, count is in [1, options.batch], and every observation is finite.
void CheckInput(const Checkpoint& checkpoint, const PolicyOptions& options,
                const PolicyInput& input);

// Throws Error(kBadInput) if an action is not finite.
void CheckActions(std::span<const float> actions);

}  // namespace mjp

#endif  // POLICY_INPUT_CHECK_H_
