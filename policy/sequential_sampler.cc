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
    const size_t first = FirstStep(run);
    for (size_t k = first; k < schedule_.size(); ++k) {
      const DenoiseStep& step = schedule_[k];
      if (k > 0 && static_cast<int>(k) == run.held.warm_start) StartWarm(run, step);
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
    return static_cast<int>(schedule_.size() - first);
  }

 private:
  // The first step that somebody needs.
  static size_t FirstStep(const ChainRun& run) {
    if (run.held.held == nullptr || run.trace != nullptr) return 0;
    const bool all =
        std::all_of(run.held.held, run.held.held + run.environments, [](int n) { return n > 0; });
    return all ? run.held.warm_start : 0;
  }

  // Puts the plan before, with the noise of `step`, in the place of x where it is known.
  void StartWarm(const ChainRun& run, const DenoiseStep& step) const {
    for (int n = 0; n < run.environments; ++n) {
      if (run.held.held[n] == 0) continue;
      const size_t first = size_t{1} * n * elements_;
      for (size_t i = first; i < first + elements_; ++i)
        run.x[i] = HeldElement(step.sqrt_a, step.sqrt_1ma, run.held.clean[i], start_[i]);
    }
  }

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
