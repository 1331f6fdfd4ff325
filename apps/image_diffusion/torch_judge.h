#ifndef APPS_IMAGE_DIFFUSION_TORCH_JUDGE_H_
#define APPS_IMAGE_DIFFUSION_TORCH_JUDGE_H_

#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "image_diffusion/data/pictures.h"

namespace mjp::app {

// A data set on a device, of which every tenth picture is held out from all training.
struct SplitPictures {
  at::Tensor training, held_out;                // (N, size, size, channels), bytes
  at::Tensor training_labels, held_out_labels;  // (N), int64
};
SplitPictures Split(const mjp::PictureSet& pictures, const at::Device& device);

// Bytes (N, size, size, channels) as maps (N, channels, size, size), -1 to 1.
at::Tensor Normalised(const at::Tensor& bytes, at::ScalarType type);

// Trains a small classifier to tell the classes from each other and from what is no picture of the
// set (blends, joined halves, noise), and writes it to `path`. Returns the share of held-out
// pictures that it recognises rightly; nothing, and writes nothing, where `stop` became true.
std::optional<double> TrainJudge(const mjp::PictureSet& pictures, uint64_t seed,
                                 const std::string& path, const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // APPS_IMAGE_DIFFUSION_TORCH_JUDGE_H_
