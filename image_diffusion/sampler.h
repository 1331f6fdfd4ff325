#ifndef IMAGE_DIFFUSION_SAMPLER_H_
#define IMAGE_DIFFUSION_SAMPLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "image_diffusion/model.h"
#include "kernels/shared/denoise.h"
#include "policy/policy.h"

// Draws pictures with a model. Picture i of a seed starts from, and is disturbed by, noise that
// depends on (seed, i) alone (kernels/shared/philox.h), so every implementation draws the same
// pictures within its number format, in whatever batches.

namespace mjp {

// How far a step's input may move, root mean square over the noise level, and still count as final.
// What is then left is about what fp16 rounds (apps/image_diffusion/README.md).
inline constexpr float kWindowTolerance = 2e-4f;

struct ImageSamplerOptions {
  SamplerKind sampler = SamplerKind::kDdpm;
  int steps = 0;                           // 0: as many as the model asks for
  int batch = 8;                           // pictures drawn together
  int threads = 1;                         // CPU only
  Precision precision = Precision::kFp32;  // GPU only; never kAuto
  bool graph = false;                      // GPU only: the whole chain is one CUDA graph
  // GPU only: steps of each picture that one pass evaluates
  // (kernels/cuda/sampler/image_picard.cuh); 0: one
  int window = 0;
  float tolerance = kWindowTolerance;
};

// What a film shows: x (count, size, size, channels) before step `step` of `steps`.
using ImageObserver = std::function<void(int step, std::span<const float> x)>;

class ImageSampler {
 public:
  virtual ~ImageSampler() = default;
  // Draws pictures first ... first + count - 1 of `seed`; count <= batch. Returns (count, size,
  // size, channels), about -1 to 1. `observer`, if set, sees x at the beginning, every
  // `observe_every` steps and at the end; the chain then runs step by step.
  virtual std::vector<float> Sample(uint64_t seed, int first, int count,
                                    const ImageObserver& observer = {}, int observe_every = 1) = 0;
  virtual std::string Description() const = 0;
  // Steps of the chain.
  virtual int steps() const = 0;
  // Passes of the network that the last Sample() took.
  virtual int passes() const { return steps(); }
};

// Throws Error if x, which `sampler` has drawn, is not finite.
void CheckFinite(std::span<const float> x, const ImageSampler& sampler);

// On the CPU. Throws Error as ImageSchedule does.
std::unique_ptr<ImageSampler> MakeCpuImageSampler(std::shared_ptr<const ImageModel> model,
                                                  const ImageSamplerOptions& options);
// On the GPU with the project's own kernels, one by one or as one graph. Throws Error where there
// is no usable GPU, the program was built without CUDA, or memory is short.
std::unique_ptr<ImageSampler> MakeCudaImageSampler(std::shared_ptr<const ImageModel> model,
                                                   const ImageSamplerOptions& options);

// The window that pays for the chain in one CUDA graph, 0 where none does: a rule in the
// configuration alone, from measurements of one H200 (apps/image_diffusion/README.md).
int ImageWindow(const ImageModel& model, const ImageSamplerOptions& options);

// The words of the samplers that pictures are drawn with.
std::vector<std::string> ImageSamplerWords();

// The schedule of `options` for `model`, in the order it runs. Throws Error(kUsage) for a sampler
// that pictures are not drawn with, Error for steps that the model does not allow.
std::vector<DenoiseStep> ImageSchedule(const ImageModel& model, const ImageSamplerOptions& options);
// Its timesteps.
std::vector<int> Timesteps(const std::vector<DenoiseStep>& schedule);

// Noise of pictures first, first + 1, ... of `seed` at `step` (a timestep, or kStartStep):
// (pictures, elements), on the host.
void FillNoise(uint64_t seed, int first, uint32_t step, int elements, std::span<float> noise);

}  // namespace mjp

#endif  // IMAGE_DIFFUSION_SAMPLER_H_
