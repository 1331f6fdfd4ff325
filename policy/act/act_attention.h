#ifndef POLICY_ACT_ACT_ATTENTION_H_
#define POLICY_ACT_ACT_ATTENTION_H_

#include <string>
#include <vector>

#include "policy/checkpoint/checkpoint.h"

// Where the actions of a chunk look. Each action of ACT is a query of its decoder, which mixes the
// tokens of the observation. A trace on the CPU has the weights of that mean: (horizon,
// environments, tokens) for each decoder layer, the mean over its heads; a row sums to 1.

namespace mjp {

// Where the tokens of one camera's picture stand among all, row by row from the top left.
struct PictureTokens {
  int first = 0, height = 0, width = 0;
};

// Those of each camera; empty: no actions of this policy look at pictures.
std::vector<PictureTokens> AttendedPictures(const Checkpoint& checkpoint);

// The tensor of PolicyTrace that has the weights of the last decoder layer, which the actions are
// made from. Throws Error for a policy that is not ACT.
std::string LastAttention(const Checkpoint& checkpoint);

}  // namespace mjp

#endif  // POLICY_ACT_ACT_ATTENTION_H_
