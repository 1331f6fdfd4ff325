#include "policy/cpu/cpu_policy.h"

#include <algorithm>
#include <utility>

#include "policy/checkpoint/normalizer.h"
#include "policy/cpu/decision.h"
#include "policy/cpu/shared_networks.h"
#include "policy/input_check.h"
#include "policy/scheduler.h"

namespace mjp::cpu {
namespace {

constexpr int kFramesAtOnce = 8;  // frames of an encoder's pass: its maps stay in cache

std::shared_ptr<PackedNetworks> Pack(const Checkpoint& checkpoint) {
  const UnetModel& model = UnetOf(checkpoint);
  const UnetPolicyConfig& config = model.config;
  auto networks = std::make_shared<PackedNetworks>();
  for (const EncoderWeights& encoder : model.encoders) {
    networks->encoders.push_back(PackEncoder(config.encoder, encoder));
  }
  if (!networks->encoders.empty()) {  // one encoder may serve all cameras
    networks->encoders.resize(config.cameras.size(), networks->encoders.front());
  }
  networks->unet = PackUnet(config, model.unet);
  return networks;
}

}  // namespace

CpuPolicy::CpuPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
    : Policy(std::move(checkpoint), options),
      config_(UnetOf(*checkpoint_).config),
      pool_(options.threads) {
  const UnetPolicyConfig& config = config_;
  ResolveCpuOptions(config, options_);
  networks_ = SharedNetworks<PackedNetworks>(checkpoint_, Pack);
  schedule_ = MakeSchedule(config.scheduler, options.sampler.kind, options.sampler.steps);
  sampler_ = MakeChainSampler(schedule_, config.horizon * config.action_dim, options_);
  unet_ = std::make_unique<Unet>(networks_->unet, config, TimestepsOf(schedule_),
                                 sampler_->MaxRows(), options.batch, pool_);
  const int frames = options.batch * config.n_obs_steps;
  const int at_once = std::min(frames, std::max(kFramesAtOnce, options.threads));
  for (size_t i = 0; i < config.cameras.size(); ++i) {
    encoders_.emplace_back(networks_->encoders[i], config.encoder, config.cameras[i],
                           checkpoint_->stats.cameras[i], at_once, pool_);
  }
  if (options.scene_drawer != nullptr && config.cameras.size() == 1)
    frames_.resize(frames * options.scene_drawer->picture_bytes());
  features_ =
      AlignedBuffer(size_t{1} * config.cameras.size() * frames * config.encoder.feature_dim);
  cond_ = AlignedBuffer(size_t{1} * options.batch * config.CondDim());
  x_ = AlignedBuffer(size_t{1} * options.batch * config.horizon * config.action_dim);
}

std::string CpuPolicy::Description() const { return CpuDescription(options_); }

void CpuPolicy::Evaluate(const float* x, const int* step, const int* environment, int rows,
                         float* output) {
  if (options_.timing == TimingDetail::kSteps) TimePass(*times_);
  unet_->Forward(x, step, environment, rows, output);
}

void CpuPolicy::EncodeFrames(const uint8_t* frames, int count, StageTimes& times) {
  const UnetPolicyConfig& config = config_;
  const int64_t picture = int64_t{config.cameras[0].height} * config.cameras[0].width * 3;
  const int64_t stride = picture * static_cast<int64_t>(config.cameras.size());
  // prepared and encoded some frames at a time: the stages are told apart by their sums
  double prepare = 0;
  const double begin = Now();
  for (size_t camera = 0; camera < encoders_.size(); ++camera) {
    Encoder& encoder = encoders_[camera];
    for (int frame = 0; frame < count; frame += encoder.capacity()) {
      const int part = std::min(encoder.capacity(), count - frame);
      const double start = Now();
      encoder.Prepare(frames + frame * stride + static_cast<int64_t>(camera) * picture, stride,
                      part);
      prepare += Now() - start;
      encoder.Encode(part,
                     features_.data() + (camera * count + frame) * config.encoder.feature_dim);
    }
  }
  times[Stage::kPrepare] = {begin, begin + prepare};
  times[Stage::kEncode] = {begin + prepare, Now()};
}

void CpuPolicy::AssembleCondition(const PolicyInput& input) {
  const UnetPolicyConfig& config = config_;
  const NormalizerStats& stats = checkpoint_->stats;
  const int frames = input.count * config.n_obs_steps, width = config.encoder.feature_dim;
  const bool image_first = config.cond_order == CondOrder::kImageState;
  float* out = cond_.data();
  for (int f = 0; f < frames; ++f) {
    const auto put_state = [&] {
      for (int i = 0; i < config.state_dim; ++i) {
        *out++ = Normalize(stats.state, i, input.state[f * config.state_dim + i]);
      }
    };
    if (!image_first) put_state();
    for (size_t camera = 0; camera < encoders_.size(); ++camera) {
      out = std::copy_n(features_.data() + (camera * frames + f) * width, width, out);
    }
    if (image_first) put_state();
    for (int i = 0; i < config.environment_dim; ++i) {
      *out++ = Normalize(stats.environment, i, input.environment[f * config.environment_dim + i]);
    }
  }
}

void CpuPolicy::FillCondition(const PolicyInput& input, StageTimes& times) {
  if (!input.global_cond.empty()) {
    std::copy(input.global_cond.begin(), input.global_cond.end(), cond_.data());
    return;
  }
  const uint8_t* frames = input.frames.data();
  if (!input.scenes.empty()) {
    Timed(times, Stage::kRender,
          [&] { DrawScenes(pool_, *options_.scene_drawer, input, frames_); });
    frames = frames_.data();
  }
  if (!encoders_.empty()) {
    EncodeFrames(frames, input.count * config_.n_obs_steps, times);
  }
  AssembleCondition(input);
}

void CpuPolicy::Infer(const PolicyInput& input, PolicyOutput& output) {
  const UnetPolicyConfig& config = config_;
  CheckInput(*checkpoint_, options_, input);
  StageTimes& times = output.times;
  times = {};
  times_ = &times;
  FillCondition(input, times);
  const std::span<const float> cond(cond_.data(), size_t{1} * input.count * config.CondDim());
  Timed(times, Stage::kFilm, [&] { unet_->Condition(cond, input.count); });
  const ChainNoise noise(input, schedule_, options_.sampler, config.horizon * config.action_dim);
  if (output.trace != nullptr) {
    *output.trace = {};
    output.trace->timesteps = TimestepsOf(schedule_);
    output.trace->global_cond.assign(cond.begin(), cond.end());
  }
  Timed(times, Stage::kDenoise, [&] {
    noise.FillStart(x_.data());
    times.passes = sampler_->Run(*this, {input.count, x_.data(), &noise, output.trace});
  });
  if (!times.steps.empty()) times.steps.back().end = times[Stage::kDenoise].end;
  Timed(times, Stage::kFetch, [&] { FetchActions(*checkpoint_, x_.data(), input.count, output); });
}

std::unique_ptr<Policy> MakeUnetPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                       const PolicyOptions& options) {
  return std::make_unique<CpuPolicy>(std::move(checkpoint), options);
}

}  // namespace mjp::cpu
