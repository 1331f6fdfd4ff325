#ifndef TESTS_SUPPORT_GOLDENS_FORMULA_WEIGHTS_H_
#define TESTS_SUPPORT_GOLDENS_FORMULA_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "policy/checkpoint/network.h"
#include "policy/checkpoint/network_model.h"

namespace mjp_test {

// Weights that are a function of a tensor's name and index (FNV-1a of the name, then splitmix64),
// exact in float32: the goldens were computed with them. pos_grid is the library's grid of a
// square feature map. Deterministic, needs no file.
mjp::Tensor FormulaTensor(const std::string& name, const std::vector<int64_t>& shape,
                          const std::string& salt = "");

// Yields FormulaTensor for every name.
class FormulaWeights : public mjp::TensorSource {
 public:
  mjp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    return FormulaTensor(name, shape);
  }
  void Discard(const std::string&) override {}
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GOLDENS_FORMULA_WEIGHTS_H_
