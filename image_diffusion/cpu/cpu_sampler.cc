#include <algorithm>
#include <utility>

#include "image_diffusion/cpu/unet2d.h"
#include "image_diffusion/sampler.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/shared/philox.h"

namespace mjp {
namespace {

class CpuImageSampler : public ImageSampler {
 public:
  CpuImageSampler(std::shared_ptr<const ImageModel> model, const ImageSamplerOptions& options)
      : model_(std::move(model)),
        options_(options),
        schedule_(ImageSchedule(*model_, options)),
        pool_(options.threads),
        unet_(*model_, Timesteps(schedule_), options.batch, pool_) {}

  std::vector<float> Sample(uint64_t seed, int first, int count, const ImageObserver& observer,
                            int observe_every) override {
    const int elements = model_->config.Elements();
    std::vector<float> x(size_t{1} * elements * count), output(x.size()), noise(x.size());
    std::vector<int> step(count);
    FillNoise(seed, first, kStartStep, elements, x);
    for (int k = 0; k < steps(); ++k) {
      if (observer && k % observe_every == 0) observer(k, x);
      std::fill(step.begin(), step.end(), k);
      unet_.Forward(x.data(), step.data(), count, output.data());
      const DenoiseStep& s = schedule_[k];
      if (s.sigma > 0) FillNoise(seed, first, s.timestep, elements, noise);
      for (size_t i = 0; i < x.size(); ++i) x[i] = Denoise(s, x[i], output[i], noise[i]);
    }
    if (observer) observer(steps(), x);
    return x;
  }

  std::string Description() const override {
    return std::string("cpu (") + IsaName(ActiveIsa()) + ", fp32, " +
           std::to_string(options_.threads) + (options_.threads > 1 ? " threads)" : " thread)");
  }
  int steps() const override { return static_cast<int>(schedule_.size()); }

 private:
  std::shared_ptr<const ImageModel> model_;
  ImageSamplerOptions options_;
  std::vector<DenoiseStep> schedule_;
  cpu::ThreadPool pool_;
  cpu::Unet2d unet_;
};

}  // namespace

std::unique_ptr<ImageSampler> MakeCpuImageSampler(std::shared_ptr<const ImageModel> model,
                                                  const ImageSamplerOptions& options) {
  return std::make_unique<CpuImageSampler>(std::move(model), options);
}

}  // namespace mjp
