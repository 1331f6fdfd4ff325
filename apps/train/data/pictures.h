#ifndef APPS_TRAIN_DATA_PICTURES_H_
#define APPS_TRAIN_DATA_PICTURES_H_

#include <ATen/ATen.h>

#include "policy/checkpoint/config.h"

namespace mjp::app {

// Disturbances of the training pictures; 0 leaves one out. All pictures of an observation share
// gain and shift.
struct PictureAugmentation {
  double share = 0.5;     // of the observations that are disturbed at all
  double noise = 0;       // standard deviation in levels, drawn from [0, noise]
  double brightness = 0;  // gain within 1 +- brightness
  int shift = 0;          // pixels, both ways
};

// Draws scenes (N, 5) float32 (a FlatScene each) on their device -> u8 (N, 96, 96, 3).
at::Tensor DrawPictures(const at::Tensor& scenes);

// pictures u8 (B * steps, 96, 96, 3) -> (B * steps, 3, h, w) in `type`, channel-last, levels on
// +-1, cropped at random places where the encoder crops, disturbed as asked.
at::Tensor PreparePictures(const at::Tensor& pictures, int64_t steps,
                           const mjp::EncoderConfig& encoder,
                           const PictureAugmentation& augmentation, at::ScalarType type);

// The crop of pictures (N, height, width, 3) that the policy sees where the encoder crops.
at::Tensor CenterCrop(const at::Tensor& pictures, const mjp::EncoderConfig& encoder);

}  // namespace mjp::app

#endif  // APPS_TRAIN_DATA_PICTURES_H_
