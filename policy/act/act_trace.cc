#include "policy/act/act_trace.h"

#include <algorithm>
#include <utility>

namespace mjp::cpu {

Tensor& ActTrace::Place(const std::string& name, std::vector<int64_t> shape) {
  Tensor& tensor = trace_.tensors[name];
  if (!tensor.data.empty()) return tensor;
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return tensor = {std::move(shape), std::vector<float>(static_cast<size_t>(size))};
}

void ActTrace::Keep(const std::string& name, const float* values, int first, int count, int rows,
                    int width) {
  Tensor& tensor = Place(name, {rows, environments_, width});
  for (int n = 0; n < count; ++n) {
    for (int r = 0; r < rows; ++r) {
      std::copy_n(values + (int64_t{n} * rows + r) * width, width,
                  tensor.data.data() + (int64_t{r} * environments_ + first + n) * width);
    }
  }
}

void ActTrace::KeepMap(const std::string& name, const Features& map, int frame, int environment) {
  Tensor& tensor = Place(name, {environments_, map.channels, map.height, map.width});
  const int64_t cells = int64_t{map.height} * map.width;
  float* out = tensor.data.data() + environment * map.channels * cells;
  for (int y = 0; y < map.height; ++y) {
    for (int x = 0; x < map.width; ++x) {
      const float* cell = map.At(frame, y, x);
      for (int c = 0; c < map.channels; ++c) out[c * cells + y * map.width + x] = cell[c];
    }
  }
}

void ActTrace::KeepVector(const std::string& name, const float* values, int first, int count,
                          int width) {
  Tensor& tensor = Place(name, {environments_, width});
  std::copy_n(values, int64_t{count} * width, tensor.data.data() + int64_t{first} * width);
}

void ActTrace::Finish(const std::vector<float>& positions, int tokens, int width,
                      const float* actions, int horizon, int dim) {
  trace_.tensors["encoder_pos"] = {{tokens, 1, width}, positions};
  const int64_t size = int64_t{environments_} * horizon * dim;
  trace_.tensors["actions_norm"] = {{environments_, horizon, dim}, {actions, actions + size}};
}

}  // namespace mjp::cpu
