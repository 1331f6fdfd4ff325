#include "policy/cpu/denoising_policy.h"

#include <algorithm>
#include <utility>

#include "base/float_environment.h"
#include "policy/cpu/decision.h"
#include "policy/input_check.h"
#include "policy/prefix/held_prefix.h"

namespace mjp::cpu {

DenoisingPolicy::DenoisingPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                 const PolicyOptions& options)
    : Policy(std::move(checkpoint), options), pool_(options.threads) {
  ResolveCpuOptions(config(), options_);
}

void DenoisingPolicy::TakeBuffers(int feature_width, int cond_width) {
  feature_width_ = feature_width, cond_width_ = cond_width;
  const size_t batch = options_.batch, frames = batch * config().n_obs_steps;
  if (options_.scene_drawer != nullptr && config().cameras.size() == 1)
    frames_.resize(frames * options_.scene_drawer->picture_bytes());
  features_ = AlignedBuffer(config().cameras.size() * frames * feature_width);
  cond_ = AlignedBuffer(batch * cond_width);
  x_ = AlignedBuffer(batch * config().horizon * config().action_dim);
  if (!options_.sampler.prefix) return;
  clean_.resize(batch * config().horizon * config().action_dim);
  held_.resize(batch);
}

std::string DenoisingPolicy::Description() const { return CpuDescription(options_); }

void DenoisingPolicy::CompleteTrace(int /*count*/, PolicyTrace& /*trace*/) const {}

void DenoisingPolicy::Evaluate(const float* x, const int* step, const int* environment, int rows,
                               float* output) {
  if (options_.timing == TimingDetail::kSteps) TimePass(*times_);
  Forward(x, step, environment, rows, output);
}

void DenoisingPolicy::EncodeFrames(const uint8_t* frames, int count, StageTimes& times) {
  const std::vector<CameraFeature>& cameras = config().cameras;
  const int64_t picture = int64_t{cameras[0].height} * cameras[0].width * 3;
  const int64_t stride = picture * static_cast<int64_t>(cameras.size());
  // prepared and encoded some frames at a time: the stages are told apart by their sums
  double prepare = 0;
  const double begin = Now();
  for (size_t camera = 0; camera < cameras.size(); ++camera) {
    const int at_once = FramesAtOnce(camera);
    for (int frame = 0; frame < count; frame += at_once) {
      const int part = std::min(at_once, count - frame);
      const double start = Now();
      PrepareFrames(camera, frames + frame * stride + static_cast<int64_t>(camera) * picture,
                    stride, part);
      prepare += Now() - start;
      EncodePrepared(camera, part, features_.data() + (camera * count + frame) * feature_width_);
    }
  }
  times[Stage::kPrepare] = {begin, begin + prepare};
  times[Stage::kEncode] = {begin + prepare, Now()};
}

void DenoisingPolicy::FillConditioning(const PolicyInput& input, StageTimes& times) {
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
  if (!config().cameras.empty()) EncodeFrames(frames, input.count * config().n_obs_steps, times);
  AssembleConditioning(input);
}

HeldElements DenoisingPolicy::Held(const PolicyInput& input) {
  if (!options_.sampler.prefix) return {};
  const int warm_start = options_.sampler.warm_start;
  FillHeld(*checkpoint_, input, warm_start > 0, {clean_.data(), clean_.size()}, held_);
  return {clean_.data(), held_.data(), config().trained_prefix, warm_start};
}

void DenoisingPolicy::Infer(const PolicyInput& input, PolicyOutput& output) {
  const DefaultFloatEnvironment arithmetic;
  CheckInput(*checkpoint_, options_, input);
  StageTimes& times = output.times;
  times = {};
  times_ = &times;
  FillConditioning(input, times);
  const std::span<const float> cond(cond_.data(), size_t{1} * input.count * cond_width_);
  Timed(times, Stage::kFilm, [&] { SetConditioning(cond, input.count); });
  const ChainNoise noise(input, schedule_, options_.sampler,
                         config().horizon * config().action_dim);
  if (output.trace != nullptr) {
    *output.trace = {};
    output.trace->timesteps = TimestepsOf(schedule_);
    output.trace->global_cond.assign(cond.begin(), cond.end());
  }
  Timed(times, Stage::kDenoise, [&] {
    noise.FillStart(x_.data());
    times.passes =
        sampler_->Run(*this, {input.count, x_.data(), &noise, output.trace, Held(input)});
  });
  // windows of steps evaluate some of them again: their passes have no stored counterpart
  const bool sequential = options_.sampler.parallel_window < 2;
  if (output.trace != nullptr && sequential) CompleteTrace(input.count, *output.trace);
  if (!times.steps.empty()) times.steps.back().end = times[Stage::kDenoise].end;
  Timed(times, Stage::kFetch, [&] { FetchActions(*checkpoint_, x_.data(), input.count, output); });
}

}  // namespace mjp::cpu
