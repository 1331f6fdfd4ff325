#include "policy/unet/unet_policy.h"

#include <algorithm>
#include <utility>

#include "policy/checkpoint/normalizer.h"
#include "policy/cpu/decision.h"
#include "policy/cpu/shared_networks.h"
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

UnetCpuPolicy::UnetCpuPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                             const PolicyOptions& options)
    : DenoisingPolicy(std::move(checkpoint), options), config_(UnetOf(*checkpoint_).config) {
  networks_ = SharedNetworks<PackedNetworks>(checkpoint_, Pack);
  schedule_ = MakeSchedule(config_.scheduler, options.sampler.kind, options.sampler.steps);
  sampler_ = MakeChainSampler(schedule_, config_.horizon * config_.action_dim, options_);
  unet_ = std::make_unique<Unet>(networks_->unet, config_, TimestepsOf(schedule_),
                                 sampler_->MaxRows(), options.batch, pool_);
  const int frames = options.batch * config_.n_obs_steps;
  const int at_once = std::min(frames, std::max(kFramesAtOnce, options.threads));
  for (size_t i = 0; i < config_.cameras.size(); ++i) {
    encoders_.emplace_back(networks_->encoders[i], config_.encoder, config_.cameras[i],
                           checkpoint_->stats.cameras[i], at_once, pool_);
  }
  TakeBuffers(config_.encoder.feature_dim, config_.CondDim());
}

void UnetCpuPolicy::Forward(const float* x, const int* step, const int* environment, int rows,
                            float* output) {
  unet_->Forward(x, step, environment, rows, output);
}

void UnetCpuPolicy::SetConditioning(std::span<const float> cond, int count) {
  unet_->SetConditioning(cond, count);
}

int UnetCpuPolicy::FramesAtOnce(size_t camera) const { return encoders_[camera].capacity(); }

void UnetCpuPolicy::PrepareFrames(size_t camera, const uint8_t* frames, int64_t stride, int count) {
  encoders_[camera].Prepare(frames, stride, count);
}

void UnetCpuPolicy::EncodePrepared(size_t camera, int count, float* features) {
  encoders_[camera].Encode(count, features);
}

void UnetCpuPolicy::AssembleConditioning(const PolicyInput& input) {
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

std::unique_ptr<Policy> MakeUnetPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                       const PolicyOptions& options) {
  return std::make_unique<UnetCpuPolicy>(std::move(checkpoint), options);
}

}  // namespace mjp::cpu
