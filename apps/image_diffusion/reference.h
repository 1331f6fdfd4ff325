#ifndef APPS_IMAGE_DIFFUSION_REFERENCE_H_
#define APPS_IMAGE_DIFFUSION_REFERENCE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "image_diffusion/data/pictures.h"
#include "image_diffusion/sampler.h"

// What libtorch does for image-diffusion: training, the reference that the project's own
// implementations are compared with, and the judge of pictures. Where the program is built without
// libtorch, each throws Error(kEnvironment) that says so.

namespace mjp::app {

// How the reference runs.
enum class ReferenceKind {
  kEager,                 // float32 as PyTorch does by default: TF32 in convolutions
  kCapturedChannelsLast,  // fp16, a step is one CUDA graph
  kCapturedContiguous,    // the same in PyTorch's ordinary layout
};

// `options.batch`, `sampler` and `steps` count; a GPU is used where there is one.
std::unique_ptr<mjp::ImageSampler> MakeReferenceSampler(
    std::shared_ptr<const mjp::ImageModel> model, const mjp::ImageSamplerOptions& options,
    ReferenceKind kind);

// Gives device memory that libtorch keeps for later back to the GPU.
void ReleaseReferenceMemory();

struct ImageTrainOptions {
  mjp::PictureOptions data;
  std::vector<int> unet_channels = {64, 128, 320};
  std::string out;      // folder of the run; one that exists is continued
  double epochs = 0;    // of the whole training; 0: `seconds` decides
  double seconds = 0;   // of the whole training; 0: `epochs` decides
  int64_t batch = 256;  // pictures per step
  double learning_rate = 1e-3, average_decay = 0.999;
  int64_t warmup = 200;     // steps
  double sample_every = 5;  // epochs between grids of samples; 0: none
  double save_every = 60;   // seconds between saved states; a grid comes with one too
  int64_t log_every = 50;   // steps
  bool full_precision = false;
  uint64_t seed = 0;
};

// Trains a model and the judge of its pictures: <out>/checkpoint gets the moving average of the
// weights, <out>/judge.safetensors the judge, <out>/samples_<step>.png grids of samples,
// <out>/log.jsonl the curve, <out>/state.safetensors what a later call continues from. Returns
// whether the training is complete. Throws Error for options or data that cannot be used.
bool TrainImageModel(const ImageTrainOptions& options, std::ostream& progress,
                     const std::atomic<bool>& stop);

// How pictures were judged.
struct Judgement {
  int64_t count = 0, recognised = 0;  // recognised: one class has at least kSureConfidence
  std::vector<int64_t> per_class;     // recognised ones
  std::vector<double> confidence;     // mean of the recognised ones of a class
  double recognised_held_out = 0;     // share of held-out pictures of the set
  double nearest = 0;                 // median distance to the nearest training picture: root mean
                                      // square over the values, of levels 0 to 255
  double nearest_held_out = 0;        // the same for training pictures and the rest of their set
};
inline constexpr double kSureConfidence = 0.9;

// Judges x (count, size, size, channels), -1 to 1, with the judge of `folder` (the folder of the
// training) and against the pictures that it was trained on.
Judgement JudgePictures(const std::string& folder, const mjp::PictureSet& training,
                        const std::vector<float>& x);

}  // namespace mjp::app

#endif  // APPS_IMAGE_DIFFUSION_REFERENCE_H_
