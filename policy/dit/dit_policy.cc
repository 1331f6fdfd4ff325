#include "policy/dit/dit_policy.h"

#include <algorithm>
#include <span>
#include <utility>

#include "policy/checkpoint/normalizer.h"
#include "policy/cpu/decision.h"
#include "policy/dit/dit_trace.h"
#include "policy/flow_sampler.h"
#include "policy/scheduler.h"

namespace mjp::cpu {
namespace {

constexpr int kFramesAtOnce = 4;     // pictures of a tower's pass
constexpr int kFramesOfEncoder = 8;  // and of an encoder's: its maps stay in cache

}  // namespace

DitPolicy::DitPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
    : DenoisingPolicy(std::move(checkpoint), options), model_(DitOf(*checkpoint_)) {
  const DitConfig& config = model_.config;
  networks_ = PackedDitOf(checkpoint_);
  if (config.TextDim() > 0) texts_.emplace(model_, networks_->text, networks_->text_projection);
  const SamplerOptions& sampler = options_.sampler;
  const int elements = config.horizon * config.action_dim;
  if (config.objective == DitObjective::kFlowMatching) {
    sampler_ = sampler.parallel_window < 2
                   ? MakeFlowSampler(sampler.kind, sampler.steps, options.batch, elements)
                   : MakeParallelSampler(FlowSteps(sampler.steps), options.batch, elements,
                                         sampler.parallel_window,
                                         FlowTolerance(sampler.parallel_tolerance));
  } else {
    schedule_ = MakeSchedule(config.scheduler, sampler.kind, sampler.steps);
    sampler_ = MakeChainSampler(schedule_, elements, options_);
  }
  trunk_ = std::make_unique<Trunk>(networks_->trunk, config, DitPassTimes(config, sampler),
                                   sampler_->MaxRows(), options.batch, pool_);
  MakePictures();
  TakeBuffers(config.FeatureDim(), config.CondDim());
  // what is wrong with it is said now, and the first decision does not wait for it
  if (!options.instruction.empty()) texts_->Of({}, options_, 0, pool_);
}

void DitPolicy::MakePictures() {
  const DitConfig& config = model_.config;
  const int frames = options_.batch * config.n_obs_steps;
  if (config.encoder) {
    const int at_once = std::min(frames, std::max(kFramesOfEncoder, options_.threads));
    for (size_t i = 0; i < config.cameras.size(); ++i)
      encoders_.emplace_back(networks_->encoder, *config.encoder, config.cameras[i],
                             checkpoint_->stats.cameras[i], at_once, pool_);
    return;
  }
  const int at_once = std::min(frames, kFramesAtOnce);
  for (size_t i = 0; i < config.cameras.size(); ++i) {
    pictures_.emplace_back(config.cameras[i], checkpoint_->stats.cameras[i],
                           PictureSteps{config.resize_height, config.resize_width,
                                        config.crop_height, config.crop_width},
                           at_once, 0, pool_);
  }
  for (const PackedVision& vision : networks_->vision) {
    towers_.emplace_back(vision, config.clip, at_once, pool_);
  }
}

void DitPolicy::Forward(const float* x, const int* step, const int* environment, int rows,
                        float* output) {
  trunk_->Forward(x, step, environment, rows, output);
}

void DitPolicy::SetConditioning(std::span<const float> cond, int count) {
  trunk_->SetConditioning(cond, count);
}

int DitPolicy::FramesAtOnce(size_t camera) const {
  return encoders_.empty() ? pictures_[camera].capacity() : encoders_[camera].capacity();
}

void DitPolicy::PrepareFrames(size_t camera, const uint8_t* frames, int64_t stride, int count) {
  encoders_.empty() ? pictures_[camera].Prepare(frames, stride, count)
                    : encoders_[camera].Prepare(frames, stride, count);
}

void DitPolicy::EncodePrepared(size_t camera, int count, float* features) {
  if (!encoders_.empty()) return encoders_[camera].Encode(count, features);
  towers_[model_.config.separate_encoders ? camera : 0].Encode(pictures_[camera].view(), count,
                                                               features);
}

void DitPolicy::AssembleConditioning(const PolicyInput& input) {
  const DitConfig& config = model_.config;
  const int steps = config.n_obs_steps, count = input.count * steps;
  const int width = config.FeatureDim(), states = config.state_dim;
  float* out = cond_.data();
  for (int n = 0; n < input.count; ++n) {
    std::span<const float> text;
    if (texts_) text = texts_->Of(input, options_, n, pool_);
    for (int f = n * steps; f < (n + 1) * steps; ++f) {
      for (int i = 0; i < states; ++i) {
        *out++ = Normalize(checkpoint_->stats.state, i, input.state[f * states + i]);
      }
      for (size_t camera = 0; camera < config.cameras.size(); ++camera) {
        out = std::copy_n(features_.data() + (camera * count + f) * width, width, out);
      }
      out = std::copy(text.begin(), text.end(), out);
    }
  }
}

void DitPolicy::CompleteTrace(int count, PolicyTrace& trace) const {
  CompleteDitTrace(model_.config, options_.sampler, x_.data(), count, trace);
}

std::unique_ptr<Policy> MakeDitPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                      const PolicyOptions& options) {
  return std::make_unique<DitPolicy>(std::move(checkpoint), options);
}

}  // namespace mjp::cpu
