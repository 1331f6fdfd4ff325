#include "apps/train/optimisation/optimizer.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mjp::app {

Optimizer::Optimizer(Parameters& parameters, const OptimizerOptions& options, const Ranks& ranks)
    : parameters_(parameters), options_(options), ranks_(ranks) {
  const at::Tensor& master = parameters.master();
  average_ = master.clone();
  first_moment_ = at::zeros_like(master);
  second_moment_ = at::zeros_like(master);
  step_ = at::zeros({}, master.options());
  schedule_ = at::zeros({2}, master.options());
  gradient_norm_ = at::zeros({}, master.options());
}

void Optimizer::SetStep(int64_t step, double progress) {
  const double warmup = std::min(1.0, static_cast<double>(step + 1) / options_.warmup_steps);
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * std::clamp(progress, 0.0, 1.0)));
  const double floor = options_.final_fraction;
  learning_rate_ = options_.learning_rate * warmup * (floor + (1 - floor) * cosine);
  const double decay = std::min(options_.average_decay, (1.0 + step) / (10.0 + step));
  schedule_.copy_(at::tensor({learning_rate_, 1 - decay}, at::kFloat));
}

void Optimizer::Update() {
  c10::NoGradGuard no_grad;
  at::Tensor gradient = parameters_.gradient().to(at::kFloat);
  if (ranks_.size() > 1) {
    ranks_.Sum(gradient);
    gradient = gradient / ranks_.size();
  }
  gradient_norm_.copy_(gradient.norm());
  gradient = gradient * (options_.clip_norm / (gradient_norm_ + 1e-6)).clamp_max(1.0);
  step_.add_(1);
  const auto update = [&](int64_t start, int64_t count, double weight_decay) {
    const auto part = [&](const at::Tensor& flat) {
      return std::vector<at::Tensor>{flat.narrow(0, start, count)};
    };
    at::_fused_adamw_(part(parameters_.master()), part(gradient), part(first_moment_),
                      part(second_moment_), {}, {step_}, schedule_[0], options_.beta1,
                      options_.beta2, weight_decay, options_.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false);
  };
  const int64_t matrices = parameters_.matrix_elements();
  update(0, matrices, options_.weight_decay);
  update(matrices, parameters_.size() - matrices, 0);
  average_.lerp_(parameters_.master(), schedule_[1]);
  parameters_.UpdateWorkingCopy();
  parameters_.gradient().zero_();
}

std::vector<at::Tensor> Optimizer::State() const {
  return {parameters_.master(), average_, first_moment_, second_moment_, step_};
}

void Optimizer::Restore(const std::vector<at::Tensor>& state) {
  const std::vector<at::Tensor> mine = State();
  for (size_t i = 0; i < mine.size(); ++i) mine[i].copy_(state[i]);
  parameters_.UpdateWorkingCopy();
}

}  // namespace mjp::app
