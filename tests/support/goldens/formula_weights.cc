#include "tests/support/goldens/formula_weights.h"

#include <cmath>

namespace mjp_test {
namespace {

uint64_t HashName(const std::string& name) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return hash;
}

// uniform integer 0 ... 2^24 - 1
uint32_t Draw(uint64_t hash, uint64_t index) {
  uint64_t z = hash + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 40);
}

float Symmetric(uint32_t k) {
  return static_cast<float>(static_cast<int32_t>(k) - 8388608) * 0x1p-23f;
}

// linspace(-1, 1) in each direction, row-major cells, x changes fastest
mjp::Tensor SquareGrid(const std::vector<int64_t>& shape) {
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(shape[0]))));
  mjp::Tensor grid{shape, {}};
  const auto at = [&](int64_t i) {
    return side == 1 ? -1.0f
                     : static_cast<float>(-1.0 + 2.0 * static_cast<double>(i) / (side - 1.0));
  };
  for (int64_t i = 0; i < shape[0]; ++i) {
    grid.data.push_back(at(i % side));
    grid.data.push_back(at(i / side));
  }
  return grid;
}

}  // namespace

mjp::Tensor FormulaTensor(const std::string& name, const std::vector<int64_t>& shape,
                          const std::string& salt) {
  if (name.ends_with("pos_grid")) return SquareGrid(shape);
  const uint64_t hash = HashName(salt + name);
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  mjp::Tensor tensor{shape, std::vector<float>(static_cast<size_t>(size))};
  std::vector<float>& data = tensor.data;
  if (name.ends_with("running_var")) {
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = 0.5f + static_cast<float>(Draw(hash, i)) * 0x1p-24f;
  } else if (shape.size() == 1) {
    const float offset = name.ends_with("weight") ? 1.0f : 0.0f;
    for (size_t i = 0; i < data.size(); ++i) data[i] = offset + Symmetric(Draw(hash, i)) * 0.125f;
  } else {
    const double gain = name.ends_with("final_conv.1.weight") ? 0.5 : 1.0;
    const double fan_in = static_cast<double>(size / shape[0]);
    const auto bound = static_cast<float>(gain * std::sqrt(3.0 / fan_in));
    for (size_t i = 0; i < data.size(); ++i) data[i] = Symmetric(Draw(hash, i)) * bound;
  }
  return tensor;
}

}  // namespace mjp_test
