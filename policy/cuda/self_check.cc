#include "policy/cuda/self_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/shared/picard_step.h"
#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/cuda/engine.h"
#include "policy/network_types.h"

namespace mjp {
namespace {

constexpr int kSteps = 2;  // the first with the most noise, the last with the least
// With a window, once more: a tolerance that no window meets, and steps beyond those after which it
// is abandoned, so that its fallback runs too. Their rounding errors may add up to so many times
// those of kSteps (docs/NUMERICS.md).
constexpr float kNoTolerance = 1e-9f;
constexpr int kWindowSteps = kPicardTrialPasses + 3;
constexpr double kWindowErrors = 2.5;
constexpr int kMostRows = 128;  // beyond, no plan has another launch
constexpr unsigned kMostThreads = 16;
constexpr size_t kHashDigits = 64;

// One observation of `rows` environments alike: pictures of slopes and edges, states in the middle
// of their range.
class Observation {
 public:
  Observation(const Checkpoint& checkpoint, int rows) : keys_(rows, {0x5e1fc4ec, 0}) {
    const PolicyConfig& config = checkpoint.config;
    for (int t = 0; t < config.n_obs_steps; ++t) {
      for (const CameraFeature& camera : config.cameras) AddPicture(camera, t);
      state_.insert(state_.end(), config.state_dim, 0.1f * static_cast<float>(t));
      environment_.insert(environment_.end(), config.environment_dim, 0.1f * static_cast<float>(t));
    }
    Unnormalize(checkpoint.stats.state, config.state_dim, state_);
    Unnormalize(checkpoint.stats.environment, config.environment_dim, environment_);
    Repeat(frames_), Repeat(state_), Repeat(environment_);
    // any tokens do
    if (checkpoint.network->text_tokens() > 1) instructions_.assign(rows, {0, 1});
  }

  // Of the first `rows` environments.
  PolicyInput Input(size_t rows) const {
    PolicyInput input;
    const auto first = [&](const auto& all) {
      return std::span(all).first(all.size() / keys_.size() * rows);
    };
    input.count = static_cast<int>(rows);
    input.frames = first(frames_);
    input.state = first(state_);
    input.environment = first(environment_);
    input.keys = first(keys_);
    input.instruction_ids = first(instructions_);
    return input;
  }

 private:
  template <typename T>
  void Repeat(std::vector<T>& values) const {
    const size_t one = values.size();
    values.resize(one * keys_.size());
    for (size_t i = one; i < values.size(); ++i) values[i] = values[i - one];
  }

  void AddPicture(const CameraFeature& camera, int time) {
    for (int y = 0; y < camera.height; ++y)
      for (int x = 0; x < camera.width; ++x)
        for (int c = 0; c < camera.channels; ++c) {
          const bool inside = std::abs(2 * x - camera.width) < camera.width / 2 &&
                              std::abs(2 * y - camera.height) < camera.height / 3;
          const int slope = (x * (c + 1) * 128 / camera.width + y * 96 / camera.height + 8 * time);
          frames_.push_back(static_cast<uint8_t>(inside ? 255 - slope : slope));
        }
  }

  std::vector<NoiseKey> keys_;
  std::vector<std::vector<int>> instructions_;
  std::vector<uint8_t> frames_;
  std::vector<float> state_, environment_;
};

// The largest difference between any of `rows` and `row` in units of x, that is, of normalised
// actions.
double LargestDifference(const Checkpoint& checkpoint, std::vector<float> rows,
                         std::vector<float> row) {
  Normalize(checkpoint.stats.action, checkpoint.config.action_dim, rows);
  Normalize(checkpoint.stats.action, checkpoint.config.action_dim, row);
  double largest = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double difference = std::abs(static_cast<double>(rows[i]) - row[i % row.size()]);
    if (!(difference <= largest)) largest = difference;  // NaN stays
    if (std::isnan(largest)) break;
  }
  return largest;
}

bool HasWindows(const PolicyOptions& options) { return options.sampler.parallel_window > 1; }

// `options` for a decision of at most so many steps.
PolicyOptions Shortened(const PolicyOptions& options, int steps) {
  PolicyOptions gpu = options;
  gpu.self_check = false;
  gpu.timing = TimingDetail::kNone;
  gpu.sampler.hold_noise = 1;
  gpu.sampler.steps = std::min(options.sampler.steps, steps);
  gpu.sampler.warm_start = std::min(options.sampler.warm_start, std::max(0, gpu.sampler.steps - 1));
  if (HasWindows(options)) gpu.sampler.parallel_tolerance = kNoTolerance;
  return gpu;
}

// `options` of the same decision, step by step on the CPU.
PolicyOptions OnTheCpu(const PolicyOptions& options) {
  PolicyOptions cpu = options;
  cpu.backend = Backend::kCpu;
  cpu.precision = Precision::kFp32;
  cpu.batch = 1;
  cpu.sampler.parallel_window = 0;
  cpu.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads));
  return cpu;
}

SelfCheck Compare(const std::shared_ptr<const Checkpoint>& checkpoint, const PolicyOptions& options,
                  int steps) {
  const PolicyOptions gpu = Shortened(options, steps);
  const int rows = std::min(options.batch, kMostRows);
  const Observation observation(*checkpoint, rows);
  PolicyOutput there, here;
  const NetworkType& type = NetworkTypeOf(checkpoint->config.type);
  const std::unique_ptr<CudaEngine> engine = type.cuda->make(checkpoint, gpu);
  engine->Launch(observation.Input(rows), nullptr);
  type.make_cpu(checkpoint, OnTheCpu(gpu))->Infer(observation.Input(1), here);
  engine->Wait(there);
  SelfCheck check;
  check.rows = rows;
  check.error = LargestDifference(*checkpoint, there.actions, here.actions);
  check.weights_intact = engine->WeightsIntact();
  check.limit = type.cuda->limit(options.precision);
  return check;
}

}  // namespace

Error SelfCheckFault(const std::string& fault, const GpuTraits& gpu) {
  return EnvironmentError("the self-check at load failed: " + fault + "; this build has code for " +
                          BuiltArchitectures() + ", the GPU is " + gpu.name +
                          " (compute capability " + CapabilityText(gpu.capability) +
                          "); to build for it, run: " + kBuildForEveryGpu);
}

SelfCheck RunSelfCheck(const std::shared_ptr<const Checkpoint>& checkpoint,
                       const PolicyOptions& options) {
  const double begin = Now();
  try {
    SelfCheck check = Compare(checkpoint, options, kSteps);
    if (HasWindows(options) && options.sampler.steps > kSteps && check.Passed()) {
      check = Compare(checkpoint, options, kWindowSteps);
      check.limit *= kWindowErrors;
    }
    check.seconds = Now() - begin;
    return check;
  } catch (const OutOfDeviceMemory&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ExitCode::kEnvironment) throw;
    throw SelfCheckFault(error.what(), GpuTraits::Current());
  }
}

void RequireSelfCheck(const std::shared_ptr<const Checkpoint>& checkpoint,
                      const PolicyOptions& options) {
  using Key = std::tuple<std::string, SamplerKind, Precision, int, int, bool, bool, int>;
  static std::mutex mutex;
  static std::set<Key>& passed = *new std::set<Key>;
  const std::lock_guard lock(mutex);
  const Key key = {checkpoint->sha256,
                   options.sampler.kind,
                   options.precision,
                   options.batch,
                   options.sampler.parallel_window,
                   options.sampler.prefix,
                   options.sampler.warm_start > 0,
                   options.device};
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
