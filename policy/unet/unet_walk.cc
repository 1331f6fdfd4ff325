#include "policy/unet/unet_walk.h"

namespace mjp {

UnetOrder OrderOf(const UnetWeights& unet) {
  UnetOrder order;
  const auto add_level = [&](const UnetLevel& level, bool up) {
    order.push_back({{.takes_skip = up}, &level.block1});
    order.push_back({{.gives_skip = !up}, &level.block2});
    if (level.resample) order.push_back({{.upsamples = up}, &*level.resample});
  };
  for (const UnetLevel& level : unet.down) add_level(level, false);
  order.push_back({{}, &unet.mid1});
  order.push_back({{}, &unet.mid2});
  for (const UnetLevel& level : unet.up) add_level(level, true);
  return order;
}

std::vector<const ResidualBlock1d*> BlocksOf(const UnetWeights& unet) {
  std::vector<const ResidualBlock1d*> blocks;
  for (const auto& step : OrderOf(unet))
    if (const auto* block = std::get_if<const ResidualBlock1d*>(&step.layer))
      blocks.push_back(*block);
  return blocks;
}

}  // namespace mjp
