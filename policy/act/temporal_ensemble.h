#ifndef POLICY_ACT_TEMPORAL_ENSEMBLE_H_
#define POLICY_ACT_TEMPORAL_ENSEMBLE_H_

#include <optional>
#include <span>
#include <vector>

#include "policy/checkpoint/config.h"

namespace mjp {

// LeRobot's temporal ensembling, in float32: every control step makes a chunk, and the action that
// is executed is the mean of what all chunks say of that step, with weight exp(-m i) for the i-th
// oldest of them. A chunk takes the place of the one before, ensembled; row 0 of it is now.
class TemporalEnsemble {
 public:
  // m of `config`, and the size of its chunks.
  TemporalEnsemble(double coefficient, int horizon, int action_dim);

  // Turns `chunk` (horizon, action_dim), a new one, into the ensemble. `before`: the ensemble of
  // the control step before, of the same size. `folded`: chunks that are in it; 0: there is none.
  void Fold(std::span<const float> before, int folded, std::span<float> chunk) const;
  // What each of the chunks that speak of an action counts for in it, the oldest first; the sum is
  // 1. `chunks`: how many speak of it, 1 to horizon.
  std::vector<float> Shares(int chunks) const;

 private:
  int horizon_, action_dim_;
  std::vector<float> weights_;  // (horizon): exp(-m i)
  std::vector<float> sums_;     // (horizon): of weights 0 ... i
};

// Of a policy that ensembles; none for the others.
std::optional<TemporalEnsemble> EnsembleOf(const PolicyConfig& config);

}  // namespace mjp

#endif  // POLICY_ACT_TEMPORAL_ENSEMBLE_H_
