#include "apps/train/imitation/step.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "apps/train/optimisation/target.h"
#include "base/error.h"
#include "policy/scheduler.h"

namespace mjp::app {
namespace {

constexpr int64_t kMostHeldOut = 256;  // samples of a validation
constexpr uint64_t kValidationSeed = 20241;

// values (F, numbers) onto -1 ... 1, as the checkpoint's normalisation does.
at::Tensor Normalised(const at::Tensor& values, const FeatureStats& stats) {
  if (values.size(1) == 0) return values;
  const at::Tensor low = at::tensor(stats.first), high = at::tensor(stats.second);
  return 2 * (values - low) / (high - low) - 1;
}

}  // namespace

ImitationStep::ImitationStep(const UnetPolicyConfig& config, const NormalizerStats& stats,
                             const Network& network, const RecordedFrames& frames,
                             Parameters& parameters, Optimizer& optimizer,
                             const ImitationStepOptions& options)
    : config_(config),
      network_(network),
      parameters_(parameters),
      optimizer_(optimizer),
      options_(options),
      device_(parameters.device()),
      type_(parameters.gradient().scalar_type()),
      state_(Normalised(frames.state, stats.state).to(device_)),
      environment_(Normalised(frames.environment, stats.environment).to(device_)),
      action_(Normalised(frames.action, stats.action).to(device_)),
      step_(device_, [this] { Body(); }) {
  for (const at::Tensor& pictures : frames.pictures) pictures_.push_back(pictures.to(device_));
  ChooseSamples(frames);
  const at::Tensor alphas = at::tensor(AlphasCumprod(config.scheduler)).to(device_);
  signal_ = alphas.sqrt();
  sigma_ = (1 - alphas).sqrt();
  sum_ = at::zeros({}, parameters.master().options());
}

void ImitationStep::ChooseSamples(const RecordedFrames& frames) {
  const int64_t dropped = config_.horizon - config_.n_action_steps - config_.n_obs_steps + 1;
  std::vector<int64_t> first, last, starts, held_out;
  const auto* picture_of = frames.picture_of.const_data_ptr<int64_t>();
  for (size_t episode = 0; episode + 1 < frames.begin.size(); ++episode) {
    const int64_t begin = frames.begin[episode], end = frames.begin[episode + 1];
    first.insert(first.end(), static_cast<size_t>(end - begin), begin);
    last.insert(last.end(), static_cast<size_t>(end - begin), end - 1);
    auto& samples = frames.held_out[episode] ? held_out : starts;
    for (int64_t frame = begin; frame < end - dropped; ++frame) {
      if (picture_of[frame] >= 0) samples.push_back(frame);
    }
  }
  if (starts.empty()) {
    throw BadInput("no episode has more than " + std::to_string(dropped) +
                   " frames: record longer ones, or give a shorter --horizon");
  }
  std::vector<int64_t> chosen;  // evenly spread
  const int64_t count = std::min(kMostHeldOut, static_cast<int64_t>(held_out.size()));
  for (int64_t i = 0; i < count; ++i) {
    chosen.push_back(held_out[i * held_out.size() / count]);
  }
  first_ = at::tensor(first, at::kLong).to(device_);
  last_ = at::tensor(last, at::kLong).to(device_);
  picture_of_ = frames.picture_of.to(device_);
  starts_ = at::tensor(starts, at::kLong).to(device_);
  validation_ = at::tensor(chosen, at::kLong).to(device_);
  at::Generator generator = at::detail::createCPUGenerator(kValidationSeed);
  validation_t_ =
      at::randint(config_.scheduler.train_steps, {count}, generator, at::kLong).to(device_);
  validation_noise_ =
      at::randn({count, config_.horizon, config_.action_dim}, generator).to(device_);
}

void ImitationStep::Run() {
  ++summed_;
  step_.Run();
}

void ImitationStep::Body() {
  at::Tensor where, t, noise;
  {
    c10::NoGradGuard no_grad;
    const auto doubles = starts_.options().dtype(at::kDouble);
    const at::Tensor index = (at::rand({options_.batch}, doubles) * starts_.size(0)).to(at::kLong);
    where = starts_.index_select(0, index);
    const int64_t count = options_.batch * options_.draws;
    t = at::randint(config_.scheduler.train_steps, {count}, starts_.options());
    noise = at::randn({count, config_.horizon, config_.action_dim}, action_.options());
  }
  const at::Tensor loss = Loss(where, t, noise, /*training=*/true);
  loss.backward();
  optimizer_.Update();
  c10::NoGradGuard no_grad;
  sum_.add_(loss);
}

at::Tensor ImitationStep::Pictures(const at::Tensor& frames, size_t camera, bool training) const {
  const at::Tensor pictures =
      pictures_[camera].index_select(0, picture_of_.index_select(0, frames));
  if (training) {
    return PreparePictures(pictures, config_.n_obs_steps, config_.encoder, options_.augmentation,
                           type_);
  }
  return (CenterCrop(pictures, config_.encoder).to(type_) / 127.5 - 1).permute({0, 3, 1, 2});
}

// where (B) -> what the U-Net is conditioned on (B, CondDim()).
at::Tensor ImitationStep::Observations(const at::Tensor& where, bool training) const {
  const int64_t steps = config_.n_obs_steps;
  const at::Tensor back = at::arange(1 - steps, 1, where.options());
  const at::Tensor first = first_.index_select(0, where).unsqueeze(1);
  const at::Tensor frames = at::maximum(where.unsqueeze(1) + back, first).flatten();  // (B * To)
  std::vector<at::Tensor> parts = {state_.index_select(0, frames).to(type_)};
  for (size_t camera = 0; camera < pictures_.size(); ++camera) {
    parts.push_back(network_.Encode(Pictures(frames, camera, training)));
  }
  if (config_.environment_dim > 0) {
    parts.push_back(environment_.index_select(0, frames).to(type_));
  }
  return at::cat(parts, 1).view({where.size(0), config_.CondDim()});
}

// The loss of the samples where (B), each with t.size(0) / B timesteps and noises.
at::Tensor ImitationStep::Loss(const at::Tensor& where, const at::Tensor& t,
                               const at::Tensor& noise, bool training) const {
  const int64_t count = t.size(0), draws = count / where.size(0);
  const at::Tensor ahead = at::arange(1 - config_.n_obs_steps,
                                      1 - config_.n_obs_steps + config_.horizon, where.options());
  const at::Tensor frames = at::minimum(
      at::maximum(where.unsqueeze(1) + ahead, first_.index_select(0, where).unsqueeze(1)),
      last_.index_select(0, where).unsqueeze(1));
  const at::Tensor clean = action_.index_select(0, frames.flatten())
                               .view({where.size(0), config_.horizon, config_.action_dim})
                               .repeat_interleave(draws, 0, count);
  const at::Tensor signal = signal_.index_select(0, t).view({-1, 1, 1});
  const at::Tensor sigma = sigma_.index_select(0, t).view({-1, 1, 1});
  const at::Tensor target =
      DiffusionTarget(config_.scheduler.prediction, clean, noise, signal, sigma);
  const at::Tensor noisy = signal * clean + sigma * noise;
  const at::Tensor cond = Observations(where, training).repeat_interleave(draws, 0, count);
  const at::Tensor predicted = network_.Denoise(noisy.to(type_), t, cond);
  return at::mse_loss(predicted.to(at::kFloat), target);
}

double ImitationStep::TakeLoss() {
  const double mean = sum_.item<double>() / static_cast<double>(std::max<int64_t>(summed_, 1));
  sum_.zero_();
  summed_ = 0;
  return mean;
}

double ImitationStep::ValidationLoss() {
  if (held_out() == 0) return std::numeric_limits<double>::quiet_NaN();
  c10::NoGradGuard no_grad;
  const at::Tensor weights = parameters_.master().clone();
  parameters_.master().copy_(optimizer_.average());
  parameters_.UpdateWorkingCopy();
  const double loss =
      Loss(validation_, validation_t_, validation_noise_, /*training=*/false).item<double>();
  parameters_.master().copy_(weights);
  parameters_.UpdateWorkingCopy();
  return loss;
}

}  // namespace mjp::app
