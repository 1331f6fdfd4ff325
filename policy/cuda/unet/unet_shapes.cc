#include "policy/cuda/unet/unet_shapes.h"

#include <utility>

#include "policy/unet/network_builder.h"

namespace mjp {
namespace {

constexpr float kSomewhere[1] = {};

int Extent(const Tensor& tensor, int axis) { return static_cast<int>(tensor.shape[axis]); }

DeviceNorm NormOf(const GroupNorm& norm) { return {norm.groups, kSomewhere, kSomewhere}; }

DeviceNormConv ConvOf(const Conv& conv, int stride, int pad, bool shortcut) {
  DeviceNormConv out;
  out.shape.out_c = Extent(conv.weight, 0);
  out.shape.in_c = Extent(conv.weight, 1);
  out.shape.taps = Extent(conv.weight, 2);
  out.shape.stride = stride;
  out.shape.pad = pad;
  out.shape.shortcut = shortcut;
  out.weight = out.bias = kSomewhere;
  if (shortcut) out.shortcut_bias = kSomewhere;
  return out;
}

DeviceNormConv TransposedOf(const Conv& conv) {
  DeviceNormConv out;
  out.shape.in_c = Extent(conv.weight, 0);
  out.shape.out_c = Extent(conv.weight, 1);
  out.shape.taps = 2;
  out.shape.phases = 2;
  out.weight = out.bias = kSomewhere;
  return out;
}

NormConvBlock BlockOf(const ResidualBlock1d& block, int kernel, FilmTerms film) {
  return {.conv1 = ConvOf(block.conv1, 1, kernel / 2, block.residual.has_value()),
          .conv2 = ConvOf(block.conv2, 1, kernel / 2, false),
          .norm1 = NormOf(block.norm1),
          .norm2 = NormOf(block.norm2),
          .film = film};
}

// The first block's first convolution is `first`.
NormConvBlock FirstBlockOf(const ResidualBlock1d& block, int kernel, FilmTerms film,
                           FirstConvWeights& first) {
  NormConvBlock out = BlockOf(block, kernel, film);
  out.conv1 = {};
  first.taps = kernel;
  first.out_c = Extent(block.conv1.weight, 0);
  first.in_c = Extent(block.conv1.weight, 1);
  first.pitch = PaddedChannels(first.in_c);
  first.weight = first.bias = kSomewhere;
  if (block.residual) first.shortcut_weight = first.shortcut_bias = kSomewhere;
  return out;
}

}  // namespace

NormConvUnet UnetShapes(const UnetPolicyConfig& config) {
  const UnetWeights unet = OutlineUnet(config);
  const int kernel = config.unet.kernel_size;
  NormConvUnet out;
  out.film.blocks = FilmTermsOf(unet, config.unet.film_scale);
  auto film = out.film.blocks.begin();
  bool first = true;
  out.steps = MapUnet(
      unet,
      [&](const ResidualBlock1d& block) {
        return std::exchange(first, false) ? FirstBlockOf(block, kernel, *film++, out.first)
                                           : BlockOf(block, kernel, *film++);
      },
      [](const Conv& conv, const UnetPlace& place) {
        return place.upsamples ? TransposedOf(conv) : ConvOf(conv, 2, 1, false);
      });
  out.final_conv = ConvOf(unet.final_conv, 1, kernel / 2, false);
  out.final_norm = NormOf(unet.final_norm);
  out.head.out_c = Extent(unet.out.weight, 0);
  out.head.weight = out.head.bias = kSomewhere;
  out.film.cond.shape.in_c = PaddedChannels(config.CondDim());
  out.film.step_table = kSomewhere;
  return out;
}

}  // namespace mjp
