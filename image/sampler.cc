#include "image/sampler.h"

#include "kernels/error.h"
#include "policy/scheduler.h"

namespace dp {

std::vector<DenoiseStep> ImageSchedule(const ImageModel& model,
                                       const ImageSamplerOptions& options) {
  const SchedulerConfig& scheduler = model.config.scheduler;
  return MakeSchedule(scheduler, options.sampler,
                      options.steps > 0 ? options.steps : scheduler.inference_steps);
}

std::vector<int> Timesteps(const std::vector<DenoiseStep>& schedule) {
  std::vector<int> timesteps;
  for (const DenoiseStep& step : schedule) timesteps.push_back(step.timestep);
  return timesteps;
}

#ifndef PUSHT_HAVE_CUDA
std::unique_ptr<ImageSampler> MakeCudaImageSampler(std::shared_ptr<const ImageModel>,
                                                   const ImageSamplerOptions&) {
  throw EnvironmentError(
      "this build has no CUDA kernels (nvcc was not found); use --implementation cpu");
}
#endif

}  // namespace dp
