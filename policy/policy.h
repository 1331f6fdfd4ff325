#ifndef POLICY_POLICY_H_
#define POLICY_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/checkpoint/config.h"
#include "policy/checkpoint/network.h"
#include "policy/scene_drawer.h"
#include "policy/timing.h"

// A policy that runs: observations in, action chunks out, on the CPU or the GPU.

namespace mjp {

class GpuPicture;  // policy/pictures/gpu_picture.h

enum class Backend { kAuto, kCpu, kCuda };
enum class Precision { kAuto, kFp32, kTf32, kFp16, kBf16 };

inline constexpr int kAutoWindow = -1;

// How the reverse process is run. All default: as the checkpoint says. A policy without one refuses
// any other value.
struct SamplerOptions {
  SamplerKind kind = SamplerKind::kAuto;
  int steps = 0;  // 0: as the checkpoint says
  // Time-parallel denoising: window of steps evaluated as one batch; 0: the sequential chain;
  // kAutoWindow: whichever is faster, by the configuration alone.
  int parallel_window = kAutoWindow;
  float parallel_tolerance = 0;  // relative to the noise level; 0: the default of NUMERICS.md
  // Decisions in a row that share one noise. With 1 a robot that decides very often may choose
  // another way each time; nearly the same observation with the same noise gives the same way.
  int hold_noise = 0;  // 0: as long as a chunk would last, see ResolveHoldNoise
  // Whether inputs may hold the first actions of a chunk fixed, as PolicyInput::prefix says. Step
  // by step.
  bool prefix = false;
  // With prefix: steps of the chain that the plan before stands for. A chunk with a prefix begins
  // after them, at that plan with the noise of the next step, and so refines it; one without begins
  // at noise alone. 0: all do. Below `steps`. Whoever asks gives x_start as
  // policy/prefix/moment_noise.h has it, and what is executed in fact as the prefix.
  int warm_start = 0;
  // Deviation of a chain's noise, at its start and on its way, but for noise that is given; none:
  // as the checkpoint says.
  std::optional<float> temperature = {};

  bool operator==(const SamplerOptions&) const = default;
};

struct PolicyOptions {
  Backend backend = Backend::kAuto;
  Precision precision = Precision::kAuto;
  SamplerOptions sampler;
  int batch = 1;  // capacity in environments; kernels are chosen from it, never from the live count
  int threads = 1;                              // CPU backend only; results do not depend on it
  TimingDetail timing = TimingDetail::kStages;  // results do not depend on it
  // draws PolicyInput::scenes and outlives the policy; null: pictures come as frames alone
  const SceneDrawer* scene_drawer = nullptr;
  int device = -1;         // GPU: its ordinal; -1: the device of the thread that makes the policy
  bool self_check = true;  // GPU: compare one decision with the CPU at load
  // what the robot is to do, in words: of a policy that reads it; for inputs that do not say
  std::string instruction = {};

  bool operator==(const PolicyOptions&) const = default;
};

// Names a decision, and so its noise: the same key gives the same noise everywhere.
struct NoiseKey {
  uint64_t seed = 0;      // of the episode
  uint32_t decision = 0;  // index of the decision within the episode
};

constexpr int kMostHeldDecisions = 1000;
inline constexpr double kMostTemperature = 2;

// The decisions that share one noise where a robot decides again after `action_steps` actions:
// sampler.hold_noise, or for 0 as many as execute what the policy was trained to execute at once.
// One with a warm start. For a policy without noise it stays as it is.
int ResolveHoldNoise(const SamplerOptions& sampler, const Checkpoint& checkpoint, int action_steps);

// `sampler` with the checkpoint's own values in the place of what is not given, and hold_noise
// resolved for its own action steps. Throws Error for what its network cannot do.
SamplerOptions ResolveSampler(const SamplerOptions& sampler, const Checkpoint& checkpoint);

// The number of the noise of `decision` within its episode: one for hold_noise decisions.
inline uint32_t NoiseNumber(const SamplerOptions& sampler, uint32_t decision) {
  return decision / static_cast<uint32_t>(sampler.hold_noise);
}

// Observations of `count` environments; N = count, To = n_obs_steps, oldest step first.
// Pictures come in one of three ways: as `frames`, as `scenes` (drawn by
// PolicyOptions::scene_drawer, on the policy's device), or as `gpu_pictures` in the memory of the
// GPU that the policy runs on, which then keeps handles to them as long as it reads them.
struct PolicyInput {
  int count = 0;
  std::span<const uint8_t> frames;  // (N, To, cameras, height, width, 3) RGB
  // They stay as they are until Wait, as in Infer always: a GPU copies those in page-locked memory
  // (policy/pictures/page_locked.h) from where they are.
  bool frames_stay = false;
  std::span<const std::byte> scenes;  // (N, To, scene_bytes), as the drawer has them
  std::span<const std::shared_ptr<const GpuPicture>> gpu_pictures;  // (N, To)
  std::span<const float> state;                                     // (N, To, state_dim), raw units
  std::span<const float> environment;  // (N, To, environment_dim), raw units
  // of a policy that reads a text; both empty: PolicyOptions::instruction for all
  std::span<const std::string> instructions;          // (N)
  std::span<const std::vector<int>> instruction_ids;  // (N): the tokens instead, start to end
  std::span<const NoiseKey> keys;  // (N); not read where both noises below are given
  // with SamplerOptions::prefix: actions that will be executed whatever is decided, and how many of
  // each chunk these are, 0 to H; both empty: none
  std::span<const float> prefix;  // (N, H, action_dim), raw units; behind these actions the plan
                                  // before, with warm_start; else the rest is not read
  std::span<const int> prefix_steps;  // (N)
  // for tests and `mjpolicy infer`: noise and conditioning from outside
  std::span<const float> x_start;      // (N, H, action_dim): x at the first step
  std::span<const float> noise_by_t;   // (noise_steps, N, H, action_dim): added in the step at t
  std::span<const float> global_cond;  // (N, cond_dim()): replaces the encoder
};

// Every intermediate that the goldens know; filled when PolicyOutput::trace is set (slow path).
struct PolicyTrace {
  std::vector<int> timesteps;             // (K)
  std::vector<float> global_cond;         // (N, cond_dim())
  std::vector<float> eps_steps;           // (K, N, H, action_dim) network outputs
  std::vector<float> x_steps;             // (K, N, H, action_dim) x after each step
  std::map<std::string, Tensor> tensors;  // what else the network has, by the goldens' names
};

struct PolicyOutput {
  std::vector<float> actions;  // (N, H, action_dim), raw units, all of the horizon
  StageTimes times;
  PolicyTrace* trace = nullptr;  // in: where to put intermediates, or null
};

// Not thread-safe: one Infer at a time per object. Weights are shared between objects.
class Policy {
 public:
  virtual ~Policy() = default;

  // Makes a policy for `checkpoint`. Throws Error for a shape or option no kernel supports
  // (saying what is supported), or where the backend asked for by name cannot run.
  static std::unique_ptr<Policy> Create(std::shared_ptr<const Checkpoint> checkpoint,
                                        const PolicyOptions& options);

  // Computes the action chunks for `input`. Throws Error for spans of the wrong size or
  // non-finite observations; non-finite actions are reported as an Error too.
  virtual void Infer(const PolicyInput& input, PolicyOutput& output) = 0;

  // The same in two halves, so that the caller can work while the GPU does: one decision under way
  // at a time, `output` must live until Wait, `input` only during Launch. A backend without a
  // device computes it all in Launch.
  virtual void Launch(const PolicyInput& input, PolicyOutput& output) { Infer(input, output); }
  virtual void Wait() {}

  const PolicyConfig& config() const { return checkpoint_->config; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  // As resolved: no kAuto, no zero steps (but for the sampler of a policy without one).
  const PolicyOptions& options() const { return options_; }
  // What CUDA calls the GPU that it runs on; -1 on the CPU.
  virtual int device_ordinal() const { return -1; }
  // One line for people: backend, device, precision.
  virtual std::string Description() const = 0;

 protected:
  Policy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
      : checkpoint_(std::move(checkpoint)), options_(options) {}
  std::shared_ptr<const Checkpoint> checkpoint_;
  PolicyOptions options_;
};

}  // namespace mjp

#endif  // POLICY_POLICY_H_
