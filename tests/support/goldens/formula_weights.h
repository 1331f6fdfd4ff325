#ifndef TESTS_SUPPORT_GOLDENS_FORMULA_WEIGHTS_H_
#define TESTS_SUPPORT_GOLDENS_FORMULA_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/synthetic/formula_weights.h"

namespace mjp_test {

using mjp::FormulaTensor;

// Yields FormulaTensor for every name: the weights with which the goldens were computed. Needs no
// file.
class FormulaWeights : public mjp::TensorSource {
 public:
  mjp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    return FormulaTensor(name, shape);
  }
  void Discard(const std::string&) override {}
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GOLDENS_FORMULA_WEIGHTS_H_
