#include "policy/policy.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "base/error.h"
#include "policy/cpu/cpu_policy.h"

#ifdef MJPOLICY_HAVE_CUDA
#include "policy/cuda/cuda_policy.h"
#endif

namespace mjp {
namespace {

// as evaluate allows; more is a slip, and would be noticed when memory has run out
constexpr int kMostBatch = 4096;

void CheckRange(const std::string& what, int value, int low, int high) {
  if (value >= low && value <= high) return;
  throw Error(ExitCode::kUsage, what + " = " + std::to_string(value) + ": allowed are " +
                                    std::to_string(low) + " to " + std::to_string(high));
}

// `options` with the checkpoint's values and the defaults in the place of zeros, but for what
// depends on the backend.
PolicyOptions ResolveOptions(const PolicyConfig& config, const PolicyOptions& options) {
  PolicyOptions resolved = options;
  SamplerOptions& sampler = resolved.sampler;
  const int train_steps = config.scheduler.train_steps;
  if (sampler.steps == 0) sampler.steps = config.scheduler.inference_steps;
  CheckRange("sampler steps", sampler.steps, 1, train_steps);
  CheckRange("batch", options.batch, 1, kMostBatch);
  CheckRange("threads", options.threads, 1, 1024);
  if (sampler.parallel_window != kAutoWindow)
    CheckRange("parallel window", sampler.parallel_window, 0, train_steps);
  if (sampler.parallel_window == 1) sampler.parallel_window = 0;
  // whoever decides more often than the checkpoint says has resolved it
  sampler.hold_noise = ResolveHoldNoise(sampler, config, config.n_action_steps);
  CheckRange("hold noise", sampler.hold_noise, 1, kMostHeldDecisions);
  if (!(sampler.parallel_tolerance >= 0)) {
    throw Error(ExitCode::kUsage,
                "parallel tolerance is negative or no number: give one such as 0.01, or 0 for the "
                "default");
  }
  return resolved;
}

#ifdef MJPOLICY_HAVE_CUDA
// Tells people once why Backend::kAuto is the CPU.
void SayWhyCpu(const std::string& why) {
  static std::mutex mutex;
  static std::set<std::string>& said = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (said.insert(why).second) std::fprintf(stderr, "%s: running on the CPU\n", why.c_str());
}

// The policy on the GPU; null where Backend::kAuto is to take the CPU.
std::unique_ptr<Policy> TryCuda(const std::shared_ptr<const Checkpoint>& checkpoint,
                                const PolicyOptions& options) {
  if (options.backend == Backend::kCuda) return CreateCudaPolicy(checkpoint, options);
  std::string why;
  if (options.backend == Backend::kAuto) {
    try {
      if (CudaUsable(&why)) return CreateCudaPolicy(checkpoint, options);
    } catch (const Error& error) {
      // a shape without a GPU kernel, or a GPU that computes wrong values; the options are valid
      const bool other = error.code() == ExitCode::kBadInput ||
                         (error.code() == ExitCode::kEnvironment &&
                          dynamic_cast<const OutOfDeviceMemory*>(&error) == nullptr);
      if (!other) throw;
      why = error.what();
    }
    SayWhyCpu(why);
  }
  return nullptr;
}
#endif

}  // namespace

std::unique_ptr<Policy> Policy::Create(std::shared_ptr<const Checkpoint> checkpoint,
                                       const PolicyOptions& options) {
  PolicyOptions resolved = ResolveOptions(checkpoint->config, options);
#ifdef MJPOLICY_HAVE_CUDA
  if (auto policy = TryCuda(checkpoint, resolved)) return policy;
#else
  if (resolved.backend == Backend::kCuda) {
    throw EnvironmentError(
        "backend cuda: this build has no CUDA kernels; configure it where nvcc is found, or use "
        "backend cpu");
  }
#endif
  return std::make_unique<cpu::CpuPolicy>(std::move(checkpoint), resolved);
}

}  // namespace mjp
