#ifndef TESTS_POLICY_DIT_DIT_FORMULA_H_
#define TESTS_POLICY_DIT_DIT_FORMULA_H_

#include <cmath>
#include <string>
#include <vector>

#include "policy/checkpoint/network_model.h"
#include "tests/support/goldens/formula_weights.h"

namespace mjp_test {

// The weights of multi_task_dit's goldens: a function of a tensor's name and index, exact in
// float32. Needs no file.
class DitFormula : public mjp::TensorSource {
 public:
  mjp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    // of three inputs the formula's bound is 1: numbers in [-1, 1) alone, by the name as salt
    mjp::Tensor tensor = FormulaTensor("", {(size + 2) / 3, 3}, name);
    tensor.data.resize(static_cast<size_t>(size));
    tensor.shape = shape;
    const auto ends = [&](const char* ending) { return name.ends_with(ending); };
    if (ends("class_embedding") || ends("pos_embedding") || ends("embedding.weight")) {
      if (shape.size() < 4) return tensor;
    }
    const double gain = ends("output_proj.weight")          ? 0.25
                        : ends("adaLN_modulation.1.weight") ? 0.5
                                                            : 1;
    const auto bound = static_cast<float>(
        gain * std::sqrt(3.0 / (static_cast<double>(size) / static_cast<double>(shape[0]))));
    const bool norm = shape.size() == 1 && ends("weight");
    for (float& v : tensor.data) v = shape.size() > 1 ? v * bound : (norm ? 1 : 0) + v * 0.125f;
    return tensor;
  }
  void Discard(const std::string&) override {}
};

}  // namespace mjp_test

#endif  // TESTS_POLICY_DIT_DIT_FORMULA_H_
