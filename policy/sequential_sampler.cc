#include <algorithm>
#include <numeric>

#include "kernels/shared/held_element.h"
#include "policy/sampler.h"

namespace mjp {
namespace {

class SequentialSampler : public Sampler {
 public:
  SequentialSampler(const std::vector<DenoiseStep>& schedule, int environments, int elements)
      : schedule_(schedule),
        elements_(elements),
        step_(environments),
        environment_(environments),
        output_(size_t{1} * environments * elements),
        noise_(output_.size()) {
    std::iota(environment_.begin(), environment_.end(), 0);
  }

  int MaxRows() const override { return static_cast<int>(environment_.size()); }

  int Run(StepNetwork& network, const ChainRun& run) override {
    const size_t size = size_t{1} * run.environments * elements_;
    start_.assign(run.x, run.x + (run.held.held != nullptr ? size : 0));
    for (size_t k = 0; k < schedule_.size(); ++k) {
      const DenoiseStep& step = schedule_[k];
      Hold(run, step.sqrt_a, step.sqrt_1ma);
      std::fill_n(step_.begin(), run.environments, static_cast<int>(k));
      network.Evaluate(run.x, step_.data(), environment_.data(), run.environments, output_.data());
      if (step.sigma > 0) run.noise->Fill(static_cast<int>(k), noise_.data());
      for (size_t i = 0; i < size; ++i) run.x[i] = Denoise(step, run.x[i], output_[i], noise_[i]);
      if (run.trace == nullptr) continue;
      run.trace->eps_steps.insert(run.trace->eps_steps.end(), output_.begin(),
                                  output_.begin() + static_cast<ptrdiff_t>(size));
      run.trace->x_steps.insert(run.trace->x_steps.end(), run.x, run.x + size);
    }
    Hold(run, 1, 0);
    return static_cast<int>(schedule_.size());
  }

 private:
  void Hold(const ChainRun& run, float sqrt_a, float sqrt_1ma) const {
    if (run.held.held == nullptr) return;
    if (run.held.noiseless) sqrt_a = 1, sqrt_1ma = 0;
    for (int n = 0; n < run.environments; ++n) {
      const size_t first = size_t{1} * n * elements_;
      for (size_t i = first; i < first + run.held.held[n]; ++i)
        run.x[i] = HeldElement(sqrt_a, sqrt_1ma, run.held.clean[i], start_[i]);
    }
  }

  std::vector<DenoiseStep> schedule_;
  int elements_;
  std::vector<int> step_, environment_;
  std::vector<float> output_, noise_;
  std::vector<float> start_;  // x where the chain began, where some of it is held
};

}  // namespace

std::unique_ptr<Sampler> MakeSequentialSampler(const std::vector<DenoiseStep>& schedule,
                                               int environments, int elements) {
  return std::make_unique<SequentialSampler>(schedule, environments, elements);
}

}  // namespace mjp
