#include "apps/train/distillation/step.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "apps/train/optimisation/condition.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {
namespace {

constexpr double kBeta = 0.02;  // where the smooth L1 turns linear, of normalised actions: 5 pixels

}  // namespace

DistillationStep::DistillationStep(const Teacher& teacher, const mjp::UnetPolicyConfig& student,
                                   const Network& network, const Dataset& dataset,
                                   Parameters& parameters, Optimizer& optimizer,
                                   const StepOptions& options)
    : teacher_(teacher),
      config_(student),
      network_(network),
      dataset_(dataset),
      optimizer_(optimizer),
      options_(options),
      type_(parameters.gradient().scalar_type()),
      timestep_(at::full({1}, student.scheduler.train_steps - 1,
                         at::TensorOptions(at::kLong).device(parameters.device()))),
      sums_(at::zeros({2}, parameters.master().options())),
      step_(parameters.device(), [this] { Body(); }) {}

void DistillationStep::Run() {
  ++summed_;
  step_.Run();
}

void DistillationStep::Body() {
  Loss().backward();
  optimizer_.Update();
}

at::Tensor DistillationStep::Loss() {
  const int64_t steps = config_.n_obs_steps;
  at::Tensor pictures, states, noise, target;
  {
    c10::NoGradGuard no_grad;
    const Batch sample = dataset_.Sample(options_.batch, options_.reflect);
    states = sample.states.reshape({options_.batch * steps, kStateWidth});
    const at::Tensor drawn = DrawPictures(states);
    const at::Tensor plain = PreparePictures(drawn, steps, config_.encoder, {}, type_);
    pictures = PreparePictures(drawn, steps, config_.encoder, options_.augmentation, type_);
    noise = at::randn({options_.batch * options_.draws, config_.horizon, config_.action_dim},
                      states.options());
    target = teacher_.Chunk(
        noise, ConditionOf(config_, states, teacher_.Encode(plain), options_.draws, type_));
  }
  const at::Tensor cond =
      ConditionOf(config_, states, network_.Encode(pictures), options_.draws, type_);
  const at::Tensor made =
      network_.Denoise(noise.to(type_), timestep_.expand({noise.size(0)}), cond).to(at::kFloat);
  const at::Tensor loss = at::smooth_l1_loss(made, target, at::Reduction::Mean, kBeta);
  {
    c10::NoGradGuard no_grad;
    sums_[0].add_(loss);
    sums_[1].add_((made - target).abs().mean() * (kWorldSize / 2));
  }
  return loss;
}

DistillationLosses DistillationStep::TakeLosses() {
  const at::Tensor sums = sums_.to(at::kCPU, at::kDouble) / std::max<int64_t>(summed_, 1);
  sums_.zero_();
  summed_ = 0;
  return {sums[0].item<double>(), sums[1].item<double>()};
}

}  // namespace mjp::app
