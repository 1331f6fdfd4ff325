#include "policy/checkpoint/synthetic/formula_weights.h"

#include <cmath>
#include <string_view>

#include "policy/unet/position_grid.h"

namespace mjp {
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

// from -1 to 1
float Symmetric(uint32_t k) {
  return static_cast<float>(static_cast<int32_t>(k) - 8388608) * 0x1p-23f;
}

// What is added to a name's symmetric numbers, and what they are multiplied with.
struct Range {
  float centre = 0, bound = 1;
};

Range RangeOf(const std::string& name, const std::vector<int64_t>& shape) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  if (ends("class_embedding") || ends("pos_embedding")) return {};
  if (shape.size() == 2 && (ends("embed.weight") || ends("embedding.weight"))) return {};
  if (shape.size() == 1) return {ends("weight") ? 1.0f : 0.0f, 0.125f};
  double gain = 1, fan_in = 1;
  for (size_t i = 1; i < shape.size(); ++i) fan_in *= static_cast<double>(shape[i]);
  if (ends("output_proj.weight") && name.find("vae") == std::string::npos) gain = 0.25;
  if (ends("adaLN_modulation.1.weight") || ends("final_conv.1.weight")) gain = 0.5;
  return {0, static_cast<float>(gain * std::sqrt(3.0 / fan_in))};
}

class FormulaSource : public TensorSource {
 public:
  explicit FormulaSource(const std::string& salt) : salt_(salt) {}
  Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    return FormulaTensor(name, shape, salt_);
  }
  void Discard(const std::string&) override {}

 private:
  std::string salt_;
};

}  // namespace

Tensor FormulaTensor(const std::string& name, const std::vector<int64_t>& shape,
                     const std::string& salt) {
  if (name.ends_with("pos_grid")) {
    const int side = static_cast<int>(std::lround(std::sqrt(static_cast<double>(shape[0]))));
    return PositionGrid({side, side});
  }
  const uint64_t hash = HashName(salt + name);
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  Tensor tensor{shape, std::vector<float>(static_cast<size_t>(size))};
  std::vector<float>& data = tensor.data;
  if (name.ends_with("running_var")) {
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = 0.5f + static_cast<float>(Draw(hash, i)) * 0x1p-24f;
    return tensor;
  }
  const Range range = RangeOf(name, shape);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = range.centre + Symmetric(Draw(hash, i)) * range.bound;
  return tensor;
}

std::unique_ptr<TensorSource> MakeFormulaSource(const std::string& salt) {
  return std::make_unique<FormulaSource>(salt);
}

}  // namespace mjp
