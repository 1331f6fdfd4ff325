#include "apps/train/optimisation/training_step.h"

#include <c10/core/GradMode.h>

#include <vector>

#include "apps/train/optimisation/condition.h"
#include "apps/train/optimisation/known_actions.h"
#include "apps/train/optimisation/target.h"
#include "policy/scheduler.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {
namespace {

// states (N, 5) -> corners of the block (N, 12), normalised.
at::Tensor BlockCorners(const at::Tensor& states) {
  static const float corners[kBlockCorners][2] = {{-60, 0},  {60, 0},    {60, 30},
                                                  {15, 120}, {-15, 120}, {-60, 30}};
  std::vector<at::Tensor> points;
  const at::Tensor cosine = states.select(1, 4).cos(), sine = states.select(1, 4).sin();
  for (int i = 0; i < kBlockCorners; ++i) {
    const double x = corners[i][0], y = corners[i][1];
    points.push_back(states.select(1, 2) + x * cosine - y * sine);
    points.push_back(states.select(1, 3) + x * sine + y * cosine);
  }
  return NormalisePixels(at::stack(points, 1));
}

}  // namespace

TrainingStep::TrainingStep(const mjp::UnetPolicyConfig& config, const Network& network,
                           const Dataset& dataset, Parameters& parameters, Optimizer& optimizer,
                           const StepOptions& options)
    : config_(config),
      network_(network),
      dataset_(dataset),
      optimizer_(optimizer),
      options_(options),
      type_(parameters.gradient().scalar_type()),
      step_(parameters.device(), [this] { Body(); }) {
  const at::Tensor alphas =
      at::tensor(mjp::AlphasCumprod(config.scheduler)).to(parameters.device());
  signal_ = alphas.sqrt();
  sigma_ = (1 - alphas).sqrt();
  sums_ = at::zeros({3}, parameters.master().options());
}

void TrainingStep::Run() {
  ++summed_;
  step_.Run();
}

void TrainingStep::Body() {
  Loss().backward();
  optimizer_.Update();
  c10::NoGradGuard no_grad;
  sums_[2].add_(optimizer_.gradient_norm());
}

TrainingStep::Draw TrainingStep::DrawDiffusion(const at::Tensor& clean) const {
  const at::Tensor noise = at::randn_like(clean);
  const at::Tensor t =
      at::randint(config_.scheduler.train_steps, {clean.size(0)}, clean.options().dtype(at::kLong));
  const at::Tensor signal = signal_.index_select(0, t).view({-1, 1, 1});
  const at::Tensor sigma = sigma_.index_select(0, t).view({-1, 1, 1});
  return {signal * clean + sigma * noise, t,
          DiffusionTarget(config_.scheduler.prediction, clean, noise, signal, sigma)};
}

// A straight way from noise at time 0 to the chunk at 1 (Y. Lipman et al., "Flow Matching for
// Generative Modeling", 2023); all times alike.
TrainingStep::Draw TrainingStep::DrawFlow(const at::Tensor& clean) const {
  const at::Tensor noise = at::randn_like(clean);
  const at::Tensor t = at::rand({clean.size(0)}, clean.options());
  const at::Tensor share = t.view({-1, 1, 1});
  return {share * clean + (1 - share) * noise, t, clean - noise};
}

at::Tensor TrainingStep::Loss() {
  const int64_t batch = options_.batch, draws = options_.draws, steps = config_.n_obs_steps;
  at::Tensor pictures, states, known;
  Draw draw;
  {
    c10::NoGradGuard no_grad;
    const Batch sample = dataset_.Sample(batch, options_.reflect);
    states = sample.states.reshape({batch * steps, kStateWidth});
    pictures =
        PreparePictures(DrawPictures(states), steps, config_.encoder, options_.augmentation, type_);
    const at::Tensor clean =
        NormalisePixels(sample.actions).repeat_interleave(draws, 0, batch * draws);
    draw = options_.flow ? DrawFlow(clean) : DrawDiffusion(clean);
    if (config_.trained_prefix) {
      known = KnownActions(sample.late, draws, options_.prefix_share, config_.FirstAction(),
                           config_.horizon);
      draw.noisy = at::where(known, clean, draw.noisy);
    }
  }
  const at::Tensor features = network_.Encode(pictures);
  const at::Tensor corner_loss =
      at::smooth_l1_loss(network_.Auxiliary(features).to(at::kFloat), BlockCorners(states),
                         at::Reduction::Mean, options_.auxiliary_beta);
  const at::Tensor cond = ConditionOf(config_, states, features, draws, type_);
  const at::Tensor predicted = network_.Denoise(draw.noisy.to(type_), draw.t, cond).to(at::kFloat);
  const at::Tensor loss = known.defined() ? ErrorOfUnknown(predicted, draw.target, known)
                                          : at::mse_loss(predicted, draw.target);
  {
    c10::NoGradGuard no_grad;
    sums_[0].add_(loss);
    sums_[1].add_(corner_loss);
  }
  return loss + options_.auxiliary_weight * corner_loss;
}

Losses TrainingStep::TakeLosses() {
  const at::Tensor sums = sums_.to(at::kCPU, at::kDouble) / std::max<int64_t>(summed_, 1);
  sums_.zero_();
  summed_ = 0;
  return {sums[0].item<double>(), sums[1].item<double>(), sums[2].item<double>()};
}

}  // namespace mjp::app
