#include "image_diffusion/sampler.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "kernels/shared/philox.h"
#include "policy/option_names.h"
#include "policy/scheduler.h"

namespace mjp {
namespace {

constexpr SamplerKind kSamplers[] = {SamplerKind::kDdpm, SamplerKind::kDdim};

}  // namespace

std::vector<std::string> ImageSamplerWords() {
  std::vector<std::string> words;
  for (const SamplerKind kind : kSamplers) words.emplace_back(SamplerName(kind));
  return words;
}

int ImageWindow(const ImageModel& model, const ImageSamplerOptions& options) {
  constexpr int kRows = 128;  // of a pass: more take time in proportion
  constexpr int kLeast = 4, kMost = 16;
  constexpr int kStepsPerWindow = 16;  // at least this many windows, or steps lie too far apart
  const int steps = options.steps > 0 ? options.steps : model.config.scheduler.inference_steps;
  const int window = std::min({kMost, steps / kStepsPerWindow, kRows / options.batch});
  return window >= kLeast && model.config.Elements() % 4 == 0 ? window : 0;
}

std::vector<DenoiseStep> ImageSchedule(const ImageModel& model,
                                       const ImageSamplerOptions& options) {
  if (std::ranges::find(kSamplers, options.sampler) == std::end(kSamplers)) {
    throw Error(ExitCode::kUsage, std::string("sampler ") + SamplerName(options.sampler) +
                                      ": pictures are drawn with ddpm or ddim");
  }
  const SchedulerConfig& scheduler = model.config.scheduler;
  return MakeSchedule(scheduler, options.sampler,
                      options.steps > 0 ? options.steps : scheduler.inference_steps);
}

std::vector<int> Timesteps(const std::vector<DenoiseStep>& schedule) {
  std::vector<int> timesteps;
  timesteps.reserve(schedule.size());
  for (const DenoiseStep& step : schedule) timesteps.push_back(step.timestep);
  return timesteps;
}

void FillNoise(uint64_t seed, int first, uint32_t step, int elements, std::span<float> noise) {
  const int pictures = static_cast<int>(noise.size()) / elements;
  for (int n = 0; n < pictures; ++n) {
    for (int e = 0; e < elements; e += 4) {
      float quad[4];
      NormalQuad(seed, static_cast<uint32_t>(first + n), step, static_cast<uint32_t>(e / 4), quad);
      std::copy_n(quad, std::min(4, elements - e), noise.data() + int64_t{n} * elements + e);
    }
  }
}

void CheckFinite(std::span<const float> x, const ImageSampler& sampler) {
  if (std::all_of(x.begin(), x.end(), [](float value) { return std::isfinite(value); })) return;
  throw BadInput("pictures drawn by " + sampler.Description() +
                 " are not finite: the model's numbers are too large for it; choose --precision "
                 "fp32, or train the model again");
}

#ifndef MJPOLICY_HAVE_CUDA
std::unique_ptr<ImageSampler> MakeCudaImageSampler(std::shared_ptr<const ImageModel>,
                                                   const ImageSamplerOptions&) {
  throw EnvironmentError(
      "this build has no CUDA kernels (nvcc was not found); use --implementation cpu");
}
#endif

}  // namespace mjp
