#include "policy/cuda/unet/norm_conv_unet.h"

#include <utility>

#include "policy/unet/unet_model.h"

namespace mjp {
namespace {

NormConvBlock LoadBlock(LayerLoader& loader, const ResidualBlock1d& block, int kernel,
                        FilmTerms film) {
  NormConvBlock out;
  out.conv1 =
      loader.NormConv1d(block.conv1, 1, kernel / 2, block.residual ? &*block.residual : nullptr);
  out.conv2 = loader.NormConv1d(block.conv2, 1, kernel / 2, nullptr);
  out.norm1 = loader.Norm(block.norm1);
  out.norm2 = loader.Norm(block.norm2);
  out.film = film;
  return out;
}

// The first block: its first convolution reads x, which has few channels.
NormConvBlock LoadFirstBlock(LayerLoader& loader, const ResidualBlock1d& block, int kernel,
                             FilmTerms film, FirstConvWeights& first) {
  NormConvBlock out;
  out.conv2 = loader.NormConv1d(block.conv2, 1, kernel / 2, nullptr);
  out.norm1 = loader.Norm(block.norm1);
  out.norm2 = loader.Norm(block.norm2);
  out.film = film;
  first.taps = kernel;
  first.out_c = static_cast<int>(block.conv1.weight.shape[0]);
  first.in_c = static_cast<int>(block.conv1.weight.shape[1]);
  first.pitch = PaddedChannels(first.in_c);
  first.weight = loader.FirstWeights(block.conv1.weight);
  first.bias = loader.Floats(block.conv1.bias.data);
  if (!block.residual) return out;
  first.shortcut_weight = loader.FirstWeights(block.residual->weight);
  first.shortcut_bias = loader.Floats(block.residual->bias.data);
  return out;
}

}  // namespace

NormConvUnet LoadNormConvUnet(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring) {
  const UnetWeights& unet = UnetOf(checkpoint).unet;
  const int kernel = UnetOf(checkpoint).config.unet.kernel_size;
  NormConvUnet out;
  out.film = LoadFilm(loader, checkpoint, measuring);
  auto film = out.film.blocks.begin();
  bool first = true;
  out.steps = MapUnet(
      unet,
      [&](const ResidualBlock1d& block) {
        return std::exchange(first, false)
                   ? LoadFirstBlock(loader, block, kernel, *film++, out.first)
                   : LoadBlock(loader, block, kernel, *film++);
      },
      [&](const Conv& conv, const UnetPlace& place) {
        return place.upsamples ? loader.NormConvTransposed1d(conv)
                               : loader.NormConv1d(conv, 2, 1, nullptr);
      });
  out.final_conv = loader.NormConv1d(unet.final_conv, 1, kernel / 2, nullptr);
  out.final_norm = loader.Norm(unet.final_norm);
  out.head.out_c = static_cast<int>(unet.out.weight.shape[0]);
  out.head.weight = loader.Operands(unet.out.weight.data);
  out.head.bias = loader.Floats(unet.out.bias.data);
  return out;
}

}  // namespace mjp
