#include "policy/unet/position_grid.h"

namespace mjp {

Tensor PositionGrid(const MapSize& map) {
  Tensor grid{{int64_t{map.height} * map.width, 2}, {}};
  const auto at = [](int i, int count) {
    return count > 1 ? static_cast<float>(-1.0 + 2.0 * i / (count - 1.0)) : -1.0f;
  };
  for (int y = 0; y < map.height; ++y) {
    for (int x = 0; x < map.width; ++x) {
      grid.data.push_back(at(x, map.width));
      grid.data.push_back(at(y, map.height));
    }
  }
  return grid;
}

WithPositionGrid::WithPositionGrid(TensorSource& source, const UnetPolicyConfig& config)
    : source_(source),
      map_(config.cameras.empty() ? MapSize() : FeatureMapSize(config.encoder, config.cameras[0])) {
}

Tensor WithPositionGrid::Take(const std::string& name, const std::vector<int64_t>& shape) {
  return name.ends_with(".pos_grid") ? PositionGrid(map_) : source_.Take(name, shape);
}

}  // namespace mjp
