#include "policy/cpu/decision.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/shared/philox.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/input_check.h"

namespace mjp::cpu {

void ResolveCpuOptions(const PolicyConfig& config, PolicyOptions& options) {
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
  options.backend = Backend::kCpu;
  options.precision = Precision::kFp32;
  if (options.sampler.parallel_window == kAutoWindow) options.sampler.parallel_window = 0;
  float& tolerance = options.sampler.parallel_tolerance;
  if (tolerance == 0) tolerance = DefaultTolerance(options.precision);
}

std::string CpuDescription(const PolicyOptions& options) {
  return "CPU (" + std::string(IsaName(ActiveIsa())) + ", fp32, " +
         std::to_string(options.threads) + (options.threads == 1 ? " thread)" : " threads)");
}

void TimePass(StageTimes& times) {
  const double now = Now();
  if (!times.steps.empty()) times.steps.back().end = now;
  times.steps.push_back({now, now});
}

void DrawScenes(ThreadPool& pool, const SceneDrawer& drawer, const PolicyInput& input,
                std::span<uint8_t> frames) {
  const size_t scene = drawer.scene_bytes(), picture = drawer.picture_bytes();
  const size_t count = input.scenes.size() / scene, threads = pool.threads();
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  pool.Run([&](int part) {
    const size_t begin = count * part / threads, end = count * (part + 1) / threads;
    try {
      drawer.DrawOnCpu(input.scenes.subspan(begin * scene, (end - begin) * scene),
                       frames.subspan(begin * picture, (end - begin) * picture));
    } catch (...) {  // the pool's function must not throw
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

std::vector<int> TimestepsOf(const std::vector<DenoiseStep>& schedule) {
  std::vector<int> timesteps;
  timesteps.reserve(schedule.size());
  for (const DenoiseStep& step : schedule) timesteps.push_back(step.timestep);
  return timesteps;
}

std::unique_ptr<Sampler> MakeChainSampler(const std::vector<DenoiseStep>& schedule, int elements,
                                          const PolicyOptions& options) {
  const SamplerOptions& sampler = options.sampler;
  if (sampler.parallel_window < 2) {
    return MakeSequentialSampler(schedule, options.batch, elements);
  }
  return MakeParallelSampler(schedule, options.batch, elements, sampler.parallel_window,
                             sampler.parallel_tolerance);
}

void ChainNoise::Fill(int step, float* noise) const {
  const size_t size = size_t{1} * input_.count * elements_;
  const int t = schedule_[step].timestep;
  if (!input_.noise_by_t.empty()) {
    std::copy_n(input_.noise_by_t.begin() + static_cast<ptrdiff_t>(t * size), size, noise);
  } else {
    Draw(static_cast<uint32_t>(t), noise);
  }
}

void ChainNoise::FillStart(float* x) const {
  if (!input_.x_start.empty()) {
    std::copy(input_.x_start.begin(), input_.x_start.end(), x);
  } else {
    Draw(kStartStep, x);
  }
}

void ChainNoise::Draw(uint32_t step, float* noise) const {
  const float temperature = *sampler_.temperature;
  for (const NoiseKey& key : input_.keys) {
    const uint32_t number = NoiseNumber(sampler_, key.decision);
    for (int i = 0; i < elements_; i += 4) {
      float normals[4];
      NormalQuad(key.seed, number, step, static_cast<uint32_t>(i / 4), normals);
      for (int e = 0; e < std::min(4, elements_ - i); ++e) noise[i + e] = temperature * normals[e];
    }
    noise += elements_;
  }
}

void FetchActions(const Checkpoint& checkpoint, const float* x, int count, PolicyOutput& output) {
  const PolicyConfig& config = checkpoint.config;
  const size_t size = size_t{1} * count * config.horizon * config.action_dim;
  output.actions.assign(x, x + size);
  Unnormalize(checkpoint.stats.action, config.action_dim, output.actions);
  CheckActions(output.actions);
}

}  // namespace mjp::cpu
