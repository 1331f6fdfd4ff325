#ifndef POLICY_UNET_POSITION_GRID_H_
#define POLICY_UNET_POSITION_GRID_H_

#include <string>
#include <vector>

#include "policy/unet/network_builder.h"

namespace mjp {

// Where the cells of a feature map are, as LeRobot has it: (cells, 2), x and y of each cell from -1
// to 1, row by row. A map of one row or column has -1 there.
Tensor PositionGrid(const MapSize& map);

// Another source's tensors, but for the position grids: those follow from the config alone.
class WithPositionGrid : public TensorSource {
 public:
  // `source` must outlive this.
  WithPositionGrid(TensorSource& source, const UnetPolicyConfig& config);

  Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override;
  void Discard(const std::string& name) override { source_.Discard(name); }

 private:
  TensorSource& source_;
  MapSize map_;
};

}  // namespace mjp

#endif  // POLICY_UNET_POSITION_GRID_H_
