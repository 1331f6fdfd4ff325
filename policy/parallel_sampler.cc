#include <algorithm>
#include <cmath>

#include "policy/sampler.h"

namespace dp {
namespace {

constexpr float kLeastNoise = 0.05f;  // tolerance is relative to the noise level, at least this
// the window is given up where after some passes it moved less than this many steps per pass
constexpr int kTrialPasses = 10;
constexpr int kLeastGain = 2;

float Clipped(const DenoiseStep& s, float x0) {
  return s.clip > 0 ? std::clamp(x0, -s.clip, s.clip) : x0;
}

// The step with x0 and eps given.
float StepFrom(const DenoiseStep& s, float x, float x0, float eps, float noise) {
  const float mean = s.x0_scale * Clipped(s, x0);
  if (s.ddim) return mean + s.eps_scale * eps;
  return mean + s.x_scale * x + (s.sigma > 0 ? s.sigma * noise : 0.0f);
}

// v = sqrt(a) eps - sqrt(1 - a) x0 of the network's output at x.
float VelocityOf(const DenoiseStep& s, float x, float output) {
  return s.sqrt_a * PredictedNoise(s, x, output) - s.sqrt_1ma * PredictedSample(s, x, output);
}

// x0 at x of a frozen v.
float SampleOfVelocity(const DenoiseStep& s, float x, float v) {
  return s.sqrt_a * x - s.sqrt_1ma * v;
}

class ParallelSampler : public Sampler {
 public:
  ParallelSampler(const std::vector<DenoiseStep>& schedule, int environments, int elements,
                  int window, float tolerance)
      : schedule_(schedule),
        steps_(static_cast<int>(schedule.size())),
        elements_(elements),
        window_(std::min(window, steps_)),
        environments_(environments),
        tolerance_(tolerance),
        chains_(environments),
        row_x_(size_t{1} * environments * window_ * elements),
        row_output_(row_x_.size()),
        row_step_(size_t{1} * environments * window_),
        row_environment_(row_step_.size()),
        x_(size_t{1} * environments * (steps_ + 1) * elements),
        noise_(size_t{1} * steps_ * environments * elements),
        outputs_(noise_.size()) {}

  int MaxRows() const override { return environments_ * window_; }

  int Run(StepNetwork& network, const ChainRun& run) override {
    for (int k = 0; k < steps_; ++k) {
      if (schedule_[k].sigma > 0) run.noise->Fill(k, noise_.data() + NoiseOffset(k, run, 0));
    }
    for (int n = 0; n < run.environments; ++n) {
      chains_[n] = {};
      std::copy_n(run.x + int64_t{n} * elements_, elements_, X(n, 0));
    }
    int passes = 0;
    while (const int rows = GatherRows(run)) {
      network.Evaluate(row_x_.data(), row_step_.data(), row_environment_.data(), rows,
                       row_output_.data());
      ++passes;
      int row = 0;
      for (int n = 0; n < run.environments; ++n) {
        Chain& chain = chains_[n];
        if (chain.begin == steps_) continue;
        Sweep(n, run, row_output_.data() + int64_t{row} * elements_);
        row += chain.count;
        Advance(chain, passes);
      }
    }
    for (int n = 0; n < run.environments; ++n) {
      std::copy_n(X(n, steps_), elements_, run.x + int64_t{n} * elements_);
    }
    if (run.trace != nullptr) FillTrace(run);
    return passes;
  }

 private:
  // Where one environment stands: its window is the steps [begin, begin + count).
  struct Chain {
    int begin = 0, count = 0;
    int known = 1;     // x is known, or guessed, for steps below this
    int accepted = 0;  // steps that the last sweep made final
    bool sequential = false;
  };

  float* X(int n, int k) { return x_.data() + (int64_t{n} * (steps_ + 1) + k) * elements_; }
  int64_t NoiseOffset(int k, const ChainRun& run, int n) const {
    return (int64_t{k} * run.environments + n) * elements_;
  }

  // Lays out the rows of the next pass; 0 when every chain is done.
  int GatherRows(const ChainRun& run) {
    int rows = 0;
    for (int n = 0; n < run.environments; ++n) {
      Chain& chain = chains_[n];
      const int width = chain.sequential ? 1 : window_;
      chain.count = std::min({width, steps_ - chain.begin, chain.known - chain.begin});
      for (int i = 0; i < chain.count; ++i, ++rows) {
        std::copy_n(X(n, chain.begin + i), elements_, row_x_.data() + int64_t{rows} * elements_);
        row_step_[rows] = chain.begin + i;
        row_environment_[rows] = n;
      }
    }
    return rows;
  }

  // Takes the window's steps again with the outputs just computed, then guesses x for the steps
  // that the next window may reach from the last x0.
  void Sweep(int n, const ChainRun& run, const float* outputs) {
    Chain& chain = chains_[n];
    bool final = true;  // x at step k is what the sequential chain would have, within tolerance
    chain.accepted = 0;
    const int end = chain.begin + chain.count;
    const float* old = outputs - int64_t{chain.begin} * elements_;  // indexed by step
    const float* evaluated =
        row_x_.data() + (outputs - row_output_.data()) - int64_t{chain.begin} * elements_;
    for (int k = chain.begin; k < end; ++k) {
      if (k > chain.begin) final = final && Near(k, X(n, k), evaluated + int64_t{k} * elements_);
      if (final) ++chain.accepted;
      TakeStep(n, k, run, evaluated + int64_t{k} * elements_, old + int64_t{k} * elements_,
               k == chain.begin);
      std::copy_n(old + int64_t{k} * elements_, elements_,
                  outputs_.data() + NoiseOffset(k, run, n));
    }
    if (!chain.sequential)
      Extend(n, run, end, evaluated + int64_t{end - 1} * elements_,
             old + int64_t{end - 1} * elements_);
  }

  // x at step k + 1 from x at step k and the network's `output` at `at`.
  void TakeStep(int n, int k, const ChainRun& run, const float* at, const float* output,
                bool exact) {
    const DenoiseStep& s = schedule_[k];
    const float *x = X(n, k), *noise = noise_.data() + NoiseOffset(k, run, n);
    float* next = X(n, k + 1);
    for (int i = 0; i < elements_; ++i) {
      if (exact) {  // x is where the network was evaluated
        next[i] = Denoise(s, x[i], output[i], noise[i]);
        continue;
      }
      const float v = VelocityOf(s, at[i], output[i]);
      const float eps = s.sqrt_a * v + s.sqrt_1ma * x[i];
      next[i] = StepFrom(s, x[i], SampleOfVelocity(s, x[i], v), eps, noise[i]);
    }
  }

  bool Near(int k, const float* a, const float* b) const {
    const float limit = tolerance_ * std::max(schedule_[k].sqrt_1ma, kLeastNoise);
    for (int i = 0; i < elements_; ++i) {
      if (!(std::abs(a[i] - b[i]) <= limit)) return false;
    }
    return true;
  }

  void Extend(int n, const ChainRun& run, int end, const float* at, const float* output) {
    Chain& chain = chains_[n];
    const DenoiseStep& last = schedule_[end - 1];
    chain.known = std::min(end + window_, steps_);
    for (int k = end; k < chain.known; ++k) {
      const DenoiseStep& s = schedule_[k];
      const float *x = X(n, k), *noise = noise_.data() + NoiseOffset(k, run, n);
      float* next = X(n, k + 1);
      for (int i = 0; i < elements_; ++i) {
        const float v = VelocityOf(last, at[i], output[i]);
        const float x0 = Clipped(last, SampleOfVelocity(last, X(n, end - 1)[i], v));
        next[i] = StepFrom(s, x[i], x0, (x[i] - s.sqrt_a * x0) / s.sqrt_1ma, noise[i]);
      }
    }
  }

  void Advance(Chain& chain, int passes) const {
    chain.begin += chain.accepted;
    if (passes >= kTrialPasses && chain.begin < kLeastGain * passes) chain.sequential = true;
    if (chain.sequential) chain.known = chain.begin + 1;
  }

  void FillTrace(const ChainRun& run) {
    run.trace->eps_steps.assign(
        outputs_.begin(), outputs_.begin() + static_cast<ptrdiff_t>(NoiseOffset(steps_, run, 0)));
    for (int k = 1; k <= steps_; ++k) {
      for (int n = 0; n < run.environments; ++n) {
        run.trace->x_steps.insert(run.trace->x_steps.end(), X(n, k), X(n, k) + elements_);
      }
    }
  }

  std::vector<DenoiseStep> schedule_;
  int steps_, elements_, window_, environments_;
  float tolerance_;
  std::vector<Chain> chains_;
  std::vector<float> row_x_, row_output_;  // (rows, elements) of a pass
  std::vector<int> row_step_, row_environment_;
  std::vector<float> x_;        // (environments, steps + 1, elements)
  std::vector<float> noise_;    // (steps, environments, elements)
  std::vector<float> outputs_;  // likewise: the network's last outputs
};

}  // namespace

std::unique_ptr<Sampler> MakeParallelSampler(const std::vector<DenoiseStep>& schedule,
                                             int environments, int elements, int window,
                                             float tolerance) {
  return std::make_unique<ParallelSampler>(schedule, environments, elements, window, tolerance);
}

}  // namespace dp
