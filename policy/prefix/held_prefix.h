#ifndef POLICY_PREFIX_HELD_PREFIX_H_
#define POLICY_PREFIX_HELD_PREFIX_H_

#include <span>

#include "policy/policy.h"

// The known beginning of chunks (PolicyInput::prefix) in the units of a chain.

namespace mjp {

// Writes the actions of `input`'s prefix, normalised, to `clean` (N, H, action_dim), and how many
// numbers of each chunk are held to `held` (N). Without a prefix all of `held` is 0. With `plan`
// the rest of a chunk that has one is written too.
void FillHeld(const Checkpoint& checkpoint, const PolicyInput& input, bool plan,
              std::span<float> clean, std::span<int> held);

}  // namespace mjp

#endif  // POLICY_PREFIX_HELD_PREFIX_H_
