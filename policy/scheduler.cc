#include "policy/scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/error.h"
#include "kernels/shared/exact_math.h"

namespace mjp {
namespace {

// cos^2 schedule of Nichol and Dhariwal, capped
float SquaredCosBeta(int t, int train_steps) {
  const auto alpha_bar = [](double s) {
    double sine, cosine;
    exact::SinCosOfSeveralTurns((s + 0.008) / 1.008 * std::numbers::pi / 2, &sine, &cosine);
    return cosine * cosine;
  };
  const double next = alpha_bar((t + 1.0) / train_steps);
  return static_cast<float>(
      std::min(1 - next / alpha_bar(static_cast<double>(t) / train_steps), 0.999));
}

// torch.linspace in float32: from both ends towards the middle, multiply-adds rounded once
float LinearBeta(const SchedulerConfig& config, int t) {
  const int count = config.train_steps;
  if (count == 1) return config.beta_start;
  const float step = (config.beta_end - config.beta_start) / static_cast<float>(count - 1);
  return t < count / 2 ? std::fma(step, static_cast<float>(t), config.beta_start)
                       : std::fma(-step, static_cast<float>(count - 1 - t), config.beta_end);
}

Prediction PredictionOf(PredictionType type) {
  switch (type) {
    case PredictionType::kEpsilon:
      return Prediction::kEpsilon;
    case PredictionType::kSample:
      return Prediction::kSample;
    case PredictionType::kVPrediction:
      return Prediction::kV;
  }
  return Prediction::kEpsilon;
}

// x0 is what the network says of pure noise at the last training timestep.
DenoiseStep OnePass(const SchedulerConfig& config) {
  const float a = AlphasCumprod(config).back();
  DenoiseStep step;
  step.timestep = config.train_steps - 1;
  step.sqrt_a = std::sqrt(a);
  step.sqrt_1ma = std::sqrt(1.0f - a);
  step.clip = config.clip_sample ? config.clip_range : 0.0f;
  step.prediction = Prediction::kSample;
  return step;
}

}  // namespace

std::vector<float> Betas(const SchedulerConfig& config) {
  std::vector<float> betas;
  betas.reserve(config.train_steps);
  for (int t = 0; t < config.train_steps; ++t) {
    betas.push_back(config.beta_schedule == BetaSchedule::kLinear
                        ? LinearBeta(config, t)
                        : SquaredCosBeta(t, config.train_steps));
  }
  return betas;
}

std::vector<float> AlphasCumprod(const SchedulerConfig& config) {
  std::vector<float> products;
  double product = 1;
  for (const float beta : Betas(config)) {
    product *= 1.0f - beta;
    products.push_back(static_cast<float>(product));
  }
  return products;
}

std::vector<DenoiseStep> MakeSchedule(const SchedulerConfig& config, SamplerKind kind, int steps) {
  if (steps < 1 || steps > config.train_steps) {
    throw BadInput("sampler steps = " + std::to_string(steps) + ": this checkpoint allows 1 to " +
                   std::to_string(config.train_steps));
  }
  if (kind == SamplerKind::kOneStep) return {OnePass(config)};
  const std::vector<float> alphas_cumprod = AlphasCumprod(config);
  const int ratio = config.train_steps / steps;
  std::vector<DenoiseStep> schedule;
  for (int i = steps - 1; i >= 0; --i) {
    const int t = i * ratio;
    const float a = alphas_cumprod[t];
    const float p = t >= ratio ? alphas_cumprod[t - ratio] : 1.0f;
    const float bt = 1.0f - a, bp = 1.0f - p;
    DenoiseStep step;
    step.timestep = t;
    step.sqrt_a = std::sqrt(a);
    step.sqrt_1ma = std::sqrt(bt);
    step.clip = config.clip_sample ? config.clip_range : 0.0f;
    step.prediction = PredictionOf(config.prediction);
    step.ddim = kind == SamplerKind::kDdim;
    if (step.ddim) {
      step.x0_scale = std::sqrt(p);
      step.eps_scale = std::sqrt(bp);
    } else {
      const float ca = a / p, cb = 1.0f - ca;
      const float variance =
          config.variance == VarianceType::kFixedLarge ? cb : std::max(bp / bt * cb, 1e-20f);
      step.x0_scale = std::sqrt(p) * cb / bt;
      step.x_scale = std::sqrt(ca) * bp / bt;
      step.sigma = t > 0 ? std::sqrt(variance) : 0.0f;
    }
    schedule.push_back(step);
  }
  return schedule;
}

}  // namespace mjp
