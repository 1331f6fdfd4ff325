#ifndef POLICY_CUDA_UNET_NORM_CONV_UNET_H_
#define POLICY_CUDA_UNET_NORM_CONV_UNET_H_

#include <vector>

#include "policy/cuda/unet/film.h"
#include "policy/unet/unet_walk.h"

namespace mjp {

struct NormConvBlock {
  // conv1 carries the block's 1x1 shortcut; in_c 0: the first block's, NormConvUnet::first
  DeviceNormConv conv1, conv2;
  DeviceNorm norm1, norm2;
  FilmTerms film;
};

// The U-Net's weights in the layout of its persistent kernels.
struct NormConvUnet {
  std::vector<UnetStep<NormConvBlock, DeviceNormConv>> steps;
  DeviceNormConv final_conv;
  DeviceNorm final_norm;
  DeviceFilm film;
  FirstConvWeights first;  // of the first block
  HeadWeights head;
};

// Packs `checkpoint`'s U-Net; with `measuring`, sizes alone.
NormConvUnet LoadNormConvUnet(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_NORM_CONV_UNET_H_
