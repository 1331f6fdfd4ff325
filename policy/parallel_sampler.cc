#include <algorithm>
#include <cmath>

#include "kernels/shared/picard_step.h"
#include "policy/sampler.h"

namespace mjp {
namespace {

float Dot(const float* a, const float* b, int size) {
  float sum = 0;
  for (int i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
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
        outputs_(noise_.size()),
        middle_(elements),
        guess_(elements) {
    for (std::vector<float>* values : {&at_, &v_, &dx_, &dv_}) values->resize(noise_.size());
  }

  int MaxRows() const override { return environments_ * window_; }

  int Run(StepNetwork& network, const ChainRun& run) override {
    Begin(run);
    residuals_.clear();
    int passes = 0;
    while (const int rows = GatherRows(run)) {
      network.Evaluate(row_x_.data(), row_step_.data(), row_environment_.data(), rows,
                       row_output_.data());
      ++passes;
      if (run.trace != nullptr)
        residuals_.resize(residuals_.size() + size_t{1} * run.environments * steps_, -1.0f);
      int row = 0;
      for (int n = 0; n < run.environments; ++n) {
        Chain& chain = chains_[n];
        if (chain.begin == steps_) continue;
        Sweep(n, run, row);
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
    int evaluated = 0;  // the network has been evaluated at steps below this
    int accepted = 0;   // steps that the last sweep made final
    bool sequential = false;
  };

  float* X(int n, int k) { return x_.data() + (int64_t{n} * (steps_ + 1) + k) * elements_; }
  // Of step k of environment n in what is kept of every step.
  int64_t Offset(int k, const ChainRun& run, int n) const {
    return (int64_t{k} * run.environments + n) * elements_;
  }

  // The noise of all steps, and a first window from the middle of the range as x0: the first steps
  // depend on it little.
  void Begin(const ChainRun& run) {
    for (int k = 0; k < steps_; ++k) {
      if (schedule_[k].sigma > 0) run.noise->Fill(k, noise_.data() + Offset(k, run, 0));
    }
    for (int n = 0; n < run.environments; ++n) {
      chains_[n] = {};
      std::copy_n(run.x + int64_t{n} * elements_, elements_, X(n, 0));
      Extend(n, run, 0, middle_.data());
    }
  }

  // Lays out the rows of the next pass; 0 when every chain is done.
  int GatherRows(const ChainRun& run) {
    int rows = 0;
    for (int n = 0; n < run.environments; ++n) {
      Chain& chain = chains_[n];
      chain.count = std::min(chain.sequential ? 1 : window_, steps_ - chain.begin);
      for (int i = 0; i < chain.count; ++i, ++rows) {
        std::copy_n(X(n, chain.begin + i), elements_, row_x_.data() + int64_t{rows} * elements_);
        row_step_[rows] = chain.begin + i;
        row_environment_[rows] = n;
      }
    }
    return rows;
  }

  // Takes the window's steps again with the outputs just computed, the first of them in row `row`,
  // then guesses x for the steps that the next window may reach from the last x0.
  void Sweep(int n, const ChainRun& run, int row) {
    Chain& chain = chains_[n];
    const int end = chain.begin + chain.count;
    for (int k = chain.begin; k < end; ++k, ++row) Keep(n, k, run, row);
    bool final = true;  // x at step k is what the sequential chain would have, within tolerance
    chain.accepted = 0;
    for (int k = chain.begin; k < end; ++k) {
      if (k > chain.begin)
        final = final && WithinLimit(X(n, k), at_.data() + Offset(k, run, n), Limit(n, k, run));
      if (final) ++chain.accepted;
      if (run.trace != nullptr) KeepResidual(n, k, run);
      TakeStep(n, k, run);
    }
    chain.evaluated = std::max(chain.evaluated, end);
    if (!chain.sequential) Extend(n, run, end, guess_.data());
  }

  // Keeps what the network said at step k: its v, and how that and x differ from the time before.
  void Keep(int n, int k, const ChainRun& run, int row) {
    const DenoiseStep& s = schedule_[k];
    const int64_t offset = Offset(k, run, n);
    const bool again = k < chains_[n].evaluated;
    for (int i = 0; i < elements_; ++i) {
      const float x = row_x_[int64_t{row} * elements_ + i];
      const float output = row_output_[int64_t{row} * elements_ + i];
      const float v = VelocityOf(s, x, output);
      dx_[offset + i] = again ? x - at_[offset + i] : 0;
      dv_[offset + i] = again ? v - v_[offset + i] : 0;
      at_[offset + i] = x;
      v_[offset + i] = v;
      outputs_[offset + i] = output;
    }
  }

  // How far x went along dx since the evaluation: v is taken to have gone as far along dv, at most
  // by all of it.
  float SecantStep(const float* x, int64_t offset) const {
    const float* dx = dx_.data() + offset;
    const float square = Dot(dx, dx, elements_);
    if (!(square > 0)) return 0;
    return std::clamp((Dot(x, dx, elements_) - Dot(at_.data() + offset, dx, elements_)) / square,
                      -1.0f, 1.0f);
  }

  // x at step k + 1 from x at step k, and the x0 there.
  void TakeStep(int n, int k, const ChainRun& run) {
    const DenoiseStep& s = schedule_[k];
    const int64_t offset = Offset(k, run, n);
    const float *x = X(n, k), *noise = noise_.data() + offset;
    const bool exact = k == chains_[n].begin;  // x is where the network was evaluated
    const float secant = exact ? 0 : SecantStep(x, offset);
    float* next = X(n, k + 1);
    for (int i = 0; i < elements_; ++i) {
      const float v = v_[offset + i] + secant * dv_[offset + i];
      guess_[i] = Clipped(s, SampleOfVelocity(s, x[i], v));
      next[i] = exact ? Denoise(s, x[i], outputs_[offset + i], noise[i])
                      : StepOfVelocity(s, x[i], v, noise[i]);
    }
  }

  // How far x of step k of the window may have moved.
  float Limit(int n, int k, const ChainRun& run) const {
    const float limit = PicardLimit(schedule_[k], tolerance_);
    return PicardScalesTolerance(schedule_[k]) ? limit * ToleranceScale(n, k, run) : limit;
  }

  // How many times farther x of step k, not the window's first, may have moved than that of a late
  // step; the network shows it by how it took the neighbouring step.
  float ToleranceScale(int n, int k, const ChainRun& run) const {
    const Chain& chain = chains_[n];
    const int neighbour = k + 1 < chain.begin + chain.count ? k + 1 : k - 1;
    const DenoiseStep &s = schedule_[k], &other = schedule_[neighbour];
    const float *x = at_.data() + Offset(k, run, n), *v = v_.data() + Offset(k, run, n);
    const float* other_x = at_.data() + Offset(neighbour, run, n);
    const float* other_v = v_.data() + Offset(neighbour, run, n);
    float x_square = 0, x0_square = 0;
    for (int i = 0; i < elements_; ++i) {
      const float d = x[i] / s.sqrt_a - other_x[i] / other.sqrt_a;
      const float d0 = Clipped(s, SampleOfVelocity(s, x[i], v[i])) -
                       Clipped(other, SampleOfVelocity(other, other_x[i], other_v[i]));
      x_square += d * d;
      x0_square += d0 * d0;
    }
    return PicardToleranceScale(s, x_square, x0_square);
  }

  // For people: how far x of step k has moved since its evaluation, as a share of what it may.
  void KeepResidual(int n, int k, const ChainRun& run) {
    float moved = 0;
    const float *x = X(n, k), *at = at_.data() + Offset(k, run, n);
    for (int i = 0; i < elements_; ++i) {
      const float distance = std::abs(x[i] - at[i]);
      moved = std::isnan(distance) ? INFINITY : std::max(moved, distance);
    }
    const bool exact = k == chains_[n].begin;
    const size_t pass = residuals_.size() - size_t{1} * run.environments * steps_;
    residuals_[pass + size_t{1} * n * steps_ + k] = exact ? 0 : moved / Limit(n, k, run);
  }

  bool WithinLimit(const float* a, const float* b, float limit) const {
    for (int i = 0; i < elements_; ++i) {
      if (!(std::abs(a[i] - b[i]) <= limit)) return false;
    }
    return true;
  }

  // x after step `begin` as far as the next window may reach, with x0 held.
  void Extend(int n, const ChainRun& run, int begin, const float* x0) {
    const int end = std::min(begin + window_, steps_);
    for (int k = begin; k < end; ++k) {
      const DenoiseStep& s = schedule_[k];
      const float *x = X(n, k), *noise = noise_.data() + Offset(k, run, n);
      float* next = X(n, k + 1);
      for (int i = 0; i < elements_; ++i) {
        next[i] = StepOfSample(s, x[i], x0[i], noise[i]);
      }
    }
  }

  void Advance(Chain& chain, int passes) const {
    chain.begin += chain.accepted;
    if (PicardGainsTooLittle(chain.begin, passes)) chain.sequential = true;
  }

  void FillTrace(const ChainRun& run) {
    const int64_t passes =
        static_cast<int64_t>(residuals_.size()) / (int64_t{run.environments} * steps_);
    run.trace->tensors["residuals"] = {{passes, run.environments, steps_}, residuals_};
    run.trace->eps_steps.assign(outputs_.begin(),
                                outputs_.begin() + static_cast<ptrdiff_t>(Offset(steps_, run, 0)));
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
  std::vector<float> x_;          // (environments, steps + 1, elements)
  std::vector<float> noise_;      // (steps, environments, elements)
  std::vector<float> outputs_;    // likewise: the network's last outputs,
  std::vector<float> at_, v_;     // where they were computed and their v,
  std::vector<float> dx_, dv_;    // and how those differ from the evaluation before
  std::vector<float> middle_;     // (elements): x0 in the middle of the range
  std::vector<float> guess_;      // (elements): x0 of the step just taken
  std::vector<float> residuals_;  // (passes, environments, steps) of a run with a trace
};

}  // namespace

std::unique_ptr<Sampler> MakeParallelSampler(const std::vector<DenoiseStep>& schedule,
                                             int environments, int elements, int window,
                                             float tolerance) {
  return std::make_unique<ParallelSampler>(schedule, environments, elements, window, tolerance);
}

float DefaultTolerance(Precision precision) {
  return precision == Precision::kBf16 ? 0.02f : 0.0125f;
}

}  // namespace mjp
