#ifndef POLICY_UNET_UNET_WALK_H_
#define POLICY_UNET_UNET_WALK_H_

#include <deque>
#include <utility>
#include <variant>
#include <vector>

#include "policy/checkpoint/network.h"

// The one walk through a U-Net: down, middle, up, with the skips between down and up. A form of the
// network keeps its layers as a list in this order, and lowers them one by one.

namespace mjp {

// Where a layer stands in the network.
struct UnetPlace {
  bool takes_skip = false;  // reads [x, skip], of the skips the last one that is left
  bool gives_skip = false;  // its output is a skip
  bool upsamples = false;   // a resampling on the way up
};

// A residual block or a resampling convolution.
template <typename Block, typename Resample>
struct UnetStep {
  UnetPlace place;
  std::variant<Block, Resample> layer;
};

// The layers of `unet` in the order in which they run: all but the final convolution and the head.
using UnetOrder = std::vector<UnetStep<const ResidualBlock1d*, const Conv*>>;
UnetOrder OrderOf(const UnetWeights& unet);
// Its residual blocks, in the same order.
std::vector<const ResidualBlock1d*> BlocksOf(const UnetWeights& unet);

// The layers of `unet` as block(weights) and resample(weights, place) make them, called in order.
template <typename MakeBlock, typename MakeResample>
auto MapUnet(const UnetWeights& unet, const MakeBlock& block, const MakeResample& resample) {
  using Block = decltype(block(std::declval<const ResidualBlock1d&>()));
  using Resample = decltype(resample(std::declval<const Conv&>(), UnetPlace{}));
  std::vector<UnetStep<Block, Resample>> steps;
  for (const auto& step : OrderOf(unet)) {
    if (const auto* weights = std::get_if<const ResidualBlock1d*>(&step.layer)) {
      steps.push_back({step.place, block(**weights)});
    } else {
      steps.push_back({step.place, resample(*std::get<const Conv*>(step.layer), step.place)});
    }
  }
  return steps;
}

// Takes `x` through `steps`: block(layer, place, x, skip) and resample(layer, place, x) return the
// next value. `skip` is null where there is none. A value that is read twice is the same object
// both times, so its first reader may change how the second one finds it.
template <typename Block, typename Resample, typename Value, typename LowerBlock,
          typename LowerResample>
Value LowerUnet(const std::vector<UnetStep<Block, Resample>>& steps, Value x,
                const LowerBlock& block, const LowerResample& resample) {
  std::deque<Value> values = {std::move(x)};  // whose addresses stay
  std::vector<Value*> skips;
  for (const auto& [place, layer] : steps) {
    Value& in = values.back();
    if (const auto* each = std::get_if<Block>(&layer)) {
      Value* const skip = place.takes_skip ? skips.back() : nullptr;
      if (place.takes_skip) skips.pop_back();
      values.push_back(block(*each, place, in, skip));
    } else {
      values.push_back(resample(std::get<Resample>(layer), place, in));
    }
    if (place.gives_skip) skips.push_back(&values.back());
  }
  return values.back();
}

}  // namespace mjp

#endif  // POLICY_UNET_UNET_WALK_H_
