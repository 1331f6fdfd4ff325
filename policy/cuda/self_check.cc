#include "policy/cuda/self_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/cpu/cpu_policy.h"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/engine.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/format_of.h"

namespace mjp {
namespace {

constexpr int kSteps = 2;  // the first with the most noise, the last with the least
constexpr unsigned kMostThreads = 16;
constexpr size_t kHashDigits = 64;

// The limits of x in docs/NUMERICS.md.
double LimitOf(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return 6e-5;
    case Precision::kBf16:
      return 6e-2;
    default:
      return 1e-2;
  }
}

// One observation: pictures of slopes and edges, states in the middle of their range.
struct Observation {
  std::vector<uint8_t> frames;
  std::vector<float> state, environment;
  NoiseKey key = {0x5e1fc4ec, 0};
  PolicyInput input;

  explicit Observation(const Checkpoint& checkpoint) {
    const PolicyConfig& config = checkpoint.config;
    for (int t = 0; t < config.n_obs_steps; ++t) {
      for (const CameraFeature& camera : config.cameras) AddPicture(camera, t);
      state.insert(state.end(), config.state_dim, 0.1f * static_cast<float>(t));
      environment.insert(environment.end(), config.environment_dim, 0.1f * static_cast<float>(t));
    }
    Unnormalize(checkpoint.stats.state, config.state_dim, state);
    Unnormalize(checkpoint.stats.environment, config.environment_dim, environment);
    input.count = 1;
    input.frames = frames;
    input.state = state;
    input.environment = environment;
    input.keys = {&key, 1};
  }

  void AddPicture(const CameraFeature& camera, int time) {
    for (int y = 0; y < camera.height; ++y)
      for (int x = 0; x < camera.width; ++x)
        for (int c = 0; c < camera.channels; ++c) {
          const bool inside = std::abs(2 * x - camera.width) < camera.width / 2 &&
                              std::abs(2 * y - camera.height) < camera.height / 3;
          const int slope = (x * (c + 1) * 128 / camera.width + y * 96 / camera.height + 8 * time);
          frames.push_back(static_cast<uint8_t>(inside ? 255 - slope : slope));
        }
  }
};

// The largest difference in units of x, that is, of normalised actions.
double LargestDifference(const Checkpoint& checkpoint, std::vector<float> a, std::vector<float> b) {
  Normalize(checkpoint.stats.action, checkpoint.config.action_dim, a);
  Normalize(checkpoint.stats.action, checkpoint.config.action_dim, b);
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    if (!(difference <= largest)) largest = difference;  // NaN stays
    if (std::isnan(largest)) break;
  }
  return largest;
}

}  // namespace

SelfCheck RunSelfCheck(const std::shared_ptr<const Checkpoint>& checkpoint,
                       const PolicyOptions& options) {
  const double begin = Now();
  PolicyOptions gpu = options;
  gpu.self_check = false;
  gpu.timing = TimingDetail::kNone;
  gpu.sampler.hold_noise = 1;
  gpu.sampler.steps = std::min(options.sampler.steps, kSteps);
  PolicyOptions cpu = gpu;
  cpu.backend = Backend::kCpu;
  cpu.precision = Precision::kFp32;
  cpu.batch = 1;
  cpu.sampler.parallel_window = 0;
  cpu.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads));
  const Observation observation(*checkpoint);
  PolicyOutput there, here;
  CudaEngine engine(checkpoint, gpu);
  engine.Launch(observation.input, nullptr);
  cpu::CpuPolicy(checkpoint, cpu).Infer(observation.input, here);
  engine.Wait(there);
  SelfCheck check;
  check.error = LargestDifference(*checkpoint, there.actions, here.actions);
  check.weights_intact =
      DeviceWeights::Get(checkpoint, FormatOf(gpu.precision), UsesNormConvWeights(engine.plan()))
          ->Intact();
  check.limit = LimitOf(options.precision);
  check.seconds = Now() - begin;
  return check;
}

void RequireSelfCheck(const std::shared_ptr<const Checkpoint>& checkpoint,
                      const PolicyOptions& options) {
  using Key = std::tuple<std::string, SamplerKind, Precision, int, int>;
  static std::mutex mutex;
  static std::set<Key>& passed = *new std::set<Key>;
  const std::lock_guard lock(mutex);
  const Key key = {checkpoint->sha256, options.sampler.kind, options.precision, options.batch,
                   options.sampler.parallel_window};
  const bool named = checkpoint->sha256.size() >= kHashDigits;  // not made in memory
  if (named && passed.contains(key)) return;
  const SelfCheck check = RunSelfCheck(checkpoint, options);
  if (!check.weights_intact)
    throw EnvironmentError(
        "the self-check at load failed: the GPU's memory does not hold the weights that were "
        "copied "
        "to it; run `mjpolicy doctor`, use the backend cpu, or another GPU");
  if (!check.Passed()) {
    char figures[96];
    std::snprintf(figures, sizeof(figures), "they differ by %.3g where the format may by %.3g",
                  check.error, check.limit);
    throw EnvironmentError(std::string("the self-check at load failed: the GPU computes other "
                                       "actions than the CPU, ") +
                           figures +
                           "; run `mjpolicy doctor`, use the backend cpu, or report it; "
                           "--no-self-check runs all the same");
  }
  if (named) passed.insert(key);
}

}  // namespace mjp
