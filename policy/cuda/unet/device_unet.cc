#include "policy/cuda/unet/device_unet.h"

#include <string>

#include "base/error.h"
#include "policy/unet/unet_model.h"

namespace mjp {
namespace {

DeviceBlock1d LoadBlock(LayerLoader& loader, const ResidualBlock1d& block, int kernel,
                        FilmTerms film) {
  DeviceBlock1d out;
  out.conv1 = loader.Conv1d(block.conv1, 1, kernel / 2);
  out.conv2 = loader.Conv1d(block.conv2, 1, kernel / 2);
  out.norm1 = loader.Norm(block.norm1);
  out.norm2 = loader.Norm(block.norm2);
  if (block.residual) out.residual = loader.Conv1d(*block.residual, 1, 0);
  out.channels = out.conv1.shape.out_c;
  out.film = film;
  return out;
}

}  // namespace

DeviceUnet LoadDeviceUnet(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring) {
  const UnetConfig& config = UnetOf(checkpoint).config.unet;
  const UnetWeights& unet = UnetOf(checkpoint).unet;
  for (int dim : config.down_dims) {
    if (dim % 8 != 0)
      throw Unsupported("U-Net width " + std::to_string(dim) +
                        ": the GPU kernels take multiples of 8; use the CPU backend");
  }
  DeviceUnet out;
  out.film = LoadFilm(loader, checkpoint, measuring);
  auto film = out.film.blocks.begin();
  out.steps = MapUnet(
      unet,
      [&](const ResidualBlock1d& block) {
        return LoadBlock(loader, block, config.kernel_size, *film++);
      },
      [&](const Conv& conv, const UnetPlace& place) {
        return place.upsamples ? loader.Transposed1d(conv) : loader.Conv1d(conv, 2, 1);
      });
  out.final_conv = loader.Conv1d(unet.final_conv, 1, config.kernel_size / 2);
  out.final_norm = loader.Norm(unet.final_norm);
  out.out = loader.Conv1d(unet.out, 1, 0);
  return out;
}

}  // namespace mjp
