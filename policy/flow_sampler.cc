#include "policy/flow_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/shared/picard_step.h"

namespace mjp {
namespace {

// torch.linspace(0, 1, steps + 1) in float32: from both ends towards the middle
float GridTime(int steps, int i) {
  const float step = 1.0f / static_cast<float>(steps);
  return i < (steps + 1) / 2 ? step * static_cast<float>(i)
                             : std::fma(-step, static_cast<float>(steps - i), 1.0f);
}

class FlowSampler : public Sampler {
 public:
  FlowSampler(SamplerKind kind, int steps, int environments, int elements)
      : kind_(kind),
        steps_(steps),
        elements_(elements),
        time_(environments),
        environment_(environments),
        velocity_(size_t{1} * environments * elements),
        sum_(velocity_.size()),
        input_(velocity_.size()) {
    std::iota(environment_.begin(), environment_.end(), 0);
  }

  int MaxRows() const override { return static_cast<int>(environment_.size()); }

  int Run(StepNetwork& network, const ChainRun& run) override {
    size_ = size_t{1} * run.environments * elements_;
    passes_ = 0;
    for (int i = 0; i < steps_; ++i) {
      const float dt = GridTime(steps_, i + 1) - GridTime(steps_, i);
      if (kind_ == SamplerKind::kEuler) {
        Evaluate(network, run, run.x, i);
        for (size_t k = 0; k < size_; ++k) run.x[k] += dt * velocity_[k];
      } else {
        RungeKutta(network, run, i, dt);
      }
      if (run.trace == nullptr) continue;
      run.trace->x_steps.insert(run.trace->x_steps.end(), run.x, run.x + size_);
    }
    return passes_;
  }

 private:
  // velocity_ = network(x) at FlowTimes[time]
  void Evaluate(StepNetwork& network, const ChainRun& run, const float* x, int time) {
    std::fill_n(time_.begin(), run.environments, time);
    network.Evaluate(x, time_.data(), environment_.data(), run.environments, velocity_.data());
    ++passes_;
    if (run.trace == nullptr) return;
    run.trace->eps_steps.insert(run.trace->eps_steps.end(), velocity_.begin(),
                                velocity_.begin() + static_cast<ptrdiff_t>(size_));
  }

  // the classical method of order 4
  void RungeKutta(StepNetwork& network, const ChainRun& run, int step, float dt) {
    const auto moved = [&](float divisor) {
      for (size_t k = 0; k < size_; ++k) input_[k] = run.x[k] + dt * velocity_[k] / divisor;
      return input_.data();
    };
    const auto add = [&](float weight) {
      for (size_t k = 0; k < size_; ++k) sum_[k] += weight * velocity_[k];
    };
    std::fill_n(sum_.begin(), size_, 0.0f);
    Evaluate(network, run, run.x, 3 * step);
    add(1);
    Evaluate(network, run, moved(2), 3 * step + 1);
    add(2);
    Evaluate(network, run, moved(2), 3 * step + 1);
    add(2);
    Evaluate(network, run, moved(1), 3 * step + 2);
    add(1);
    for (size_t k = 0; k < size_; ++k) run.x[k] += dt / 6.0f * sum_[k];
  }

  SamplerKind kind_;
  int steps_, elements_;
  std::vector<int> time_, environment_;
  std::vector<float> velocity_, sum_, input_;
  size_t size_ = 0;  // elements of the current Run
  int passes_ = 0;
};

}  // namespace

std::vector<double> FlowTimes(SamplerKind kind, int steps) {
  std::vector<double> times;
  for (int i = 0; i < steps; ++i) {
    const float begin = GridTime(steps, i), dt = GridTime(steps, i + 1) - begin;
    times.push_back(begin);
    if (kind == SamplerKind::kEuler) continue;
    times.push_back(begin + dt / 2.0f);
    times.push_back(begin + dt);
  }
  return times;
}

std::vector<DenoiseStep> FlowSteps(int steps) {
  std::vector<DenoiseStep> all;
  for (int i = 0; i < steps; ++i) {
    DenoiseStep step;
    step.prediction = Prediction::kSample;
    step.ddim = true;
    // the sample has no part in x: what a step takes for noise is x
    step.sqrt_a = 0, step.sqrt_1ma = 1;
    step.x0_scale = GridTime(steps, i + 1) - GridTime(steps, i);
    step.eps_scale = 1;
    step.timestep = i;
    all.push_back(step);
  }
  return all;
}

float FlowTolerance(float tolerance) { return tolerance * kPicardLeastNoise; }

std::unique_ptr<Sampler> MakeFlowSampler(SamplerKind kind, int steps, int environments,
                                         int elements) {
  return std::make_unique<FlowSampler>(kind, steps, environments, elements);
}

}  // namespace mjp
