#ifndef IMAGE_DIFFUSION_MODEL_H_
#define IMAGE_DIFFUSION_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/checkpoint/config.h"
#include "policy/checkpoint/network.h"
#include "policy/unet/network_builder.h"

// A diffusion model of square pictures: the U-Net of the policies in two dimensions, without a
// condition. Maps of level i have size / 2^i pixels both ways and down_dims[i] channels:
//   down: block, block, [3x3 convolution of stride 2];   middle: block, block;
//   up:   [x, skip] -> block, block, [every pixel twice both ways, 3x3 convolution];
//   end:  3x3 convolution, norm, Mish, 1x1 convolution.
// A level of the way up leaves as many channels as the level above it has.

namespace mjp {

struct ImageConfig {
  int size = 32;                     // pixels, both ways
  int channels = 3;                  // 1: grey, 3: RGB; values from -1 to 1
  std::string dataset;               // what it was trained on, for people
  std::vector<std::string> classes;  // of that data set
  UnetConfig unet = {.down_dims = {64, 128, 320}, .kernel_size = 3};
  SchedulerConfig scheduler = {.train_steps = 1000, .inference_steps = 1000};

  int Elements() const { return size * size * channels; }
};

struct ImageModel {
  ImageConfig config;
  UnetWeights unet;  // convolutions (out, in, k, k)
  int64_t parameter_count = 0;
};

// Names of the tensors in model.safetensors.
TensorNames ImageNames();

// Throws Error for a size that the levels do not divide, and for channels that the norms' groups do
// not or that no way up has.
void CheckImageConfig(const ImageConfig& config);

// The network of `config` with weights from `source`. Throws Error as CheckImageConfig does.
std::shared_ptr<const ImageModel> BuildImageModel(const ImageConfig& config, TensorSource& source);
// The same with random weights, the same everywhere: for tests and benchmarks.
std::shared_ptr<const ImageModel> RandomImageModel(const ImageConfig& config, uint64_t seed);

// Reads config.json and model.safetensors of `directory`. Throws Error that names the file.
std::shared_ptr<const ImageModel> LoadImageModel(const std::string& directory);
// Writes them. Throws Error if they cannot be written.
void WriteImageModel(const std::string& directory, const ImageModel& model);

}  // namespace mjp

#endif  // IMAGE_DIFFUSION_MODEL_H_
