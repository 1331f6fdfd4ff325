#ifndef POLICY_CUDA_UNET_DEVICE_UNET_H_
#define POLICY_CUDA_UNET_DEVICE_UNET_H_

#include <optional>
#include <vector>

#include "policy/checkpoint/network.h"
#include "policy/cuda/layers.h"
#include "policy/cuda/unet/film.h"
#include "policy/unet/unet_walk.h"

// The U-Net's weights on the device, shared by every engine of a checkpoint and format.

namespace mjp {

struct DeviceBlock1d {
  DeviceConv conv1, conv2;
  DeviceNorm norm1, norm2;
  std::optional<DeviceConv> residual;
  int channels = 0;
  FilmTerms film;
};

struct DeviceUnet {
  std::vector<UnetStep<DeviceBlock1d, DeviceConv>> steps;
  DeviceConv final_conv, out;
  DeviceNorm final_norm;
  DeviceFilm film;
};

// Packs `checkpoint`'s U-Net. Throws Error for a shape the kernels do not support.
DeviceUnet LoadDeviceUnet(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_DEVICE_UNET_H_
