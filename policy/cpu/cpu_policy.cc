#include "policy/cpu/cpu_policy.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/shared/philox.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/input_check.h"
#include "policy/scheduler.h"

namespace mjp::cpu {
namespace {

constexpr int kFramesAtOnce = 8;  // frames of an encoder's pass: its maps stay in cache

// The packed networks of a checkpoint; those in use by some policy are shared.
std::shared_ptr<const PackedNetworks> NetworksOf(std::shared_ptr<const Checkpoint> checkpoint) {
  static std::mutex mutex;
  static std::map<const Checkpoint*, std::weak_ptr<const PackedNetworks>> cache;
  const std::lock_guard lock(mutex);
  std::erase_if(cache, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const PackedNetworks>& entry = cache[checkpoint.get()];
  if (auto networks = entry.lock()) return networks;
  const UnetModel& model = UnetOf(*checkpoint);
  const UnetPolicyConfig& config = model.config;
  auto networks = std::make_shared<PackedNetworks>();
  for (const EncoderWeights& encoder : model.encoders) {
    networks->encoders.push_back(PackEncoder(config.encoder, encoder));
  }
  if (!networks->encoders.empty()) {  // one encoder may serve all cameras
    networks->encoders.resize(config.cameras.size(), networks->encoders.front());
  }
  networks->unet = PackUnet(config, model.unet);
  networks->checkpoint = std::move(checkpoint);
  entry = networks;
  return networks;
}

// Noise by its address, or from the input's tape.
class ChainNoise : public NoiseSource {
 public:
  ChainNoise(const PolicyInput& input, const std::vector<DenoiseStep>& schedule,
             const SamplerOptions& sampler, int elements)
      : input_(input), schedule_(schedule), sampler_(sampler), elements_(elements) {}

  void Fill(int step, float* noise) const override {
    const size_t size = size_t{1} * input_.count * elements_;
    const int t = schedule_[step].timestep;
    if (!input_.noise_by_t.empty()) {
      std::copy_n(input_.noise_by_t.begin() + static_cast<ptrdiff_t>(t * size), size, noise);
    } else {
      Draw(static_cast<uint32_t>(t), noise);
    }
  }

  void FillStart(float* x) const {
    if (!input_.x_start.empty()) {
      std::copy(input_.x_start.begin(), input_.x_start.end(), x);
    } else {
      Draw(kStartStep, x);
    }
  }

 private:
  void Draw(uint32_t step, float* noise) const {
    for (const NoiseKey& key : input_.keys) {
      const uint32_t number = NoiseNumber(sampler_, key.decision);
      for (int i = 0; i < elements_; i += 4) {
        float normals[4];
        NormalQuad(key.seed, number, step, static_cast<uint32_t>(i / 4), normals);
        std::copy_n(normals, std::min(4, elements_ - i), noise + i);
      }
      noise += elements_;
    }
  }

  const PolicyInput& input_;
  const std::vector<DenoiseStep>& schedule_;
  const SamplerOptions& sampler_;
  int elements_;
};

// Runs `f` as one stage.
template <class F>
void Timed(StageTimes& times, Stage stage, F&& f) {
  times[stage].begin = Now();
  f();
  times[stage].end = Now();
}

std::vector<int> TimestepsOf(const std::vector<DenoiseStep>& schedule) {
  std::vector<int> timesteps;
  timesteps.reserve(schedule.size());
  for (const DenoiseStep& step : schedule) timesteps.push_back(step.timestep);
  return timesteps;
}

std::unique_ptr<Sampler> MakeSampler(const std::vector<DenoiseStep>& schedule,
                                     const PolicyConfig& config, const PolicyOptions& options) {
  const int elements = config.horizon * config.action_dim;
  const SamplerOptions& sampler = options.sampler;
  if (sampler.parallel_window < 2) {
    return MakeSequentialSampler(schedule, options.batch, elements);
  }
  return MakeParallelSampler(schedule, options.batch, elements, sampler.parallel_window,
                             sampler.parallel_tolerance);
}

void CheckSupported(const PolicyConfig& config, const PolicyOptions& options) {
  if (options.precision != Precision::kAuto && options.precision != Precision::kFp32) {
    throw Error(ExitCode::kUsage,
                "the CPU backend computes in fp32 only: ask for precision fp32 or auto");
  }
  for (const CameraFeature& camera : config.cameras) {
    const CameraFeature& first = config.cameras.front();
    if (camera.channels != 3 || camera.height != first.height || camera.width != first.width) {
      throw Unsupported(camera.name + ": all pictures of a policy must be RGB and of one size");
    }
  }
}

}  // namespace

CpuPolicy::CpuPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
    : Policy(std::move(checkpoint), options),
      config_(UnetOf(*checkpoint_).config),
      pool_(options.threads) {
  const UnetPolicyConfig& config = config_;
  CheckSupported(config, options);
  options_.backend = Backend::kCpu;
  options_.precision = Precision::kFp32;
  if (options_.sampler.parallel_window == kAutoWindow) options_.sampler.parallel_window = 0;
  float& tolerance = options_.sampler.parallel_tolerance;
  if (tolerance == 0) tolerance = DefaultTolerance(options_.precision);
  networks_ = NetworksOf(checkpoint_);
  schedule_ = MakeSchedule(config.scheduler, options.sampler.kind, options.sampler.steps);
  sampler_ = MakeSampler(schedule_, config, options_);
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

std::string CpuPolicy::Description() const {
  return "CPU (" + std::string(IsaName(ActiveIsa())) + ", fp32, " +
         std::to_string(options_.threads) + (options_.threads == 1 ? " thread)" : " threads)");
}

void CpuPolicy::Evaluate(const float* x, const int* step, const int* environment, int rows,
                         float* output) {
  if (options_.timing == TimingDetail::kSteps) TimePass(*times_);
  unet_->Forward(x, step, environment, rows, output);
}

void CpuPolicy::TimePass(StageTimes& times) const {
  const double now = Now();
  if (!times.steps.empty()) times.steps.back().end = now;
  times.steps.push_back({now, now});
}

void CpuPolicy::DrawScenes(const PolicyInput& input) {
  const SceneDrawer& drawer = *options_.scene_drawer;
  const size_t scene = drawer.scene_bytes(), picture = drawer.picture_bytes();
  const size_t count = input.scenes.size() / scene, threads = pool_.threads();
  pool_.Run([&](int part) {
    const size_t begin = count * part / threads, end = count * (part + 1) / threads;
    drawer.DrawOnCpu(input.scenes.subspan(begin * scene, (end - begin) * scene),
                     std::span(frames_).subspan(begin * picture, (end - begin) * picture));
  });
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
    Timed(times, Stage::kRender, [&] { DrawScenes(input); });
    frames = frames_.data();
  }
  if (!encoders_.empty()) {
    EncodeFrames(frames, input.count * config_.n_obs_steps, times);
  }
  AssembleCondition(input);
}

void CpuPolicy::FetchActions(int count, PolicyOutput& output) {
  const UnetPolicyConfig& config = config_;
  const size_t size = size_t{1} * count * config.horizon * config.action_dim;
  output.actions.assign(x_.data(), x_.data() + size);
  Unnormalize(checkpoint_->stats.action, config.action_dim, output.actions);
  CheckActions(output.actions);
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
  Timed(times, Stage::kFetch, [&] { FetchActions(input.count, output); });
}

std::unique_ptr<Policy> MakeUnetPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                       const PolicyOptions& options) {
  return std::make_unique<CpuPolicy>(std::move(checkpoint), options);
}

}  // namespace mjp::cpu
