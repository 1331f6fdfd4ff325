#ifndef POLICY_CHECKPOINT_SYNTHETIC_FORMULA_WEIGHTS_H_
#define POLICY_CHECKPOINT_SYNTHETIC_FORMULA_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/checkpoint/network_model.h"

// Weights that are a function of a tensor's name and index (FNV-1a of the name, then splitmix64),
// exact in float32. Whoever has the formula has the network, in any language: stored values of the
// original libraries were computed with them. docs/CHECKPOINTS.md has the formula.

namespace mjp {

// Tensor `name`; `salt` is put before the name. "pos_grid" is that of a square feature map:
// MadeCheckpoint has that of the network's.
Tensor FormulaTensor(const std::string& name, const std::vector<int64_t>& shape,
                     const std::string& salt = "");

// Yields FormulaTensor for every name.
std::unique_ptr<TensorSource> MakeFormulaSource(const std::string& salt);

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_SYNTHETIC_FORMULA_WEIGHTS_H_
