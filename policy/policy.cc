#include "policy/policy.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/float_environment.h"
#include "policy/checkpoint/network_model.h"
#include "policy/network_types.h"
#include "policy/option_names.h"

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

void RefuseSampler(const SamplerOptions& sampler, const Checkpoint& checkpoint) {
  const std::pair<const char*, bool> given[] = {
      {"sampler", sampler.kind != SamplerKind::kAuto},
      {"steps", sampler.steps != 0},
      {"temperature", sampler.temperature.has_value()},
      {"parallel", sampler.parallel_window != kAutoWindow || sampler.parallel_tolerance != 0},
      {"hold noise", sampler.hold_noise != 0},
      {"prefix", sampler.prefix},
      {"warm start", sampler.warm_start != 0}};
  for (const auto& [name, is_given] : given) {
    if (!is_given) continue;
    throw Error(ExitCode::kUsage, std::string(name) + ": a policy of type " +
                                      checkpoint.config.type +
                                      " makes its chunk in one pass, without noise: leave it out");
  }
}

// The window of a chain with a prefix: none. Throws Error where something else was asked for.
int WithPrefix(const SamplerOptions& sampler) {
  if (sampler.kind != SamplerKind::kDdpm && sampler.kind != SamplerKind::kDdim) {
    throw Error(ExitCode::kUsage, "prefix: the sampler " + std::string(SamplerName(sampler.kind)) +
                                      " cannot hold actions fixed, ddpm and ddim can");
  }
  if (sampler.parallel_window > 0) {
    throw Error(ExitCode::kUsage,
                "prefix: actions are held fixed step by step: leave parallel out, or give 0");
  }
  return 0;
}

void CheckWarmStart(const SamplerOptions& sampler) {
  if (sampler.warm_start == 0) return;
  if (!sampler.prefix) {
    throw Error(ExitCode::kUsage,
                "warm start: a plan before is known with prefix alone: give that too");
  }
  CheckRange("warm start", sampler.warm_start, 0, sampler.steps - 1);
  if (sampler.hold_noise > 1) {
    throw Error(ExitCode::kUsage,
                "hold noise: with warm start the noise belongs to the moments of the actions, and "
                "none is held: leave hold noise out");
  }
}

// `options` with the checkpoint's values and the defaults in the place of zeros, but for what
// depends on the backend.
PolicyOptions ResolveOptions(const Checkpoint& checkpoint, const PolicyOptions& options) {
  PolicyOptions resolved = options;
  resolved.sampler = ResolveSampler(options.sampler, checkpoint);
  CheckRange("batch", options.batch, 1, kMostBatch);
  CheckRange("threads", options.threads, 1, 1024);
  if (!options.instruction.empty() && checkpoint.network->text_tokens() == 0) {
    throw Error(ExitCode::kUsage, "instruction: a policy of type " + checkpoint.config.type +
                                      " reads no text: leave it out");
  }
  return resolved;
}

// Tells people once why Backend::kAuto is the CPU.
void SayWhyCpu(const std::string& why) {
  static std::mutex mutex;
  static std::set<std::string>& said = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (said.insert(why).second) std::fprintf(stderr, "%s: running on the CPU\n", why.c_str());
}

// Whether there is a GPU that Backend::kAuto would take, with `why` if not.
bool GpuUsable(std::string* why) {
#ifdef MJPOLICY_HAVE_CUDA
  return CudaUsable(why);
#else
  static_cast<void>(why);
  return false;
#endif
}

// The policy on the GPU; null where Backend::kAuto is to take the CPU.
std::unique_ptr<Policy> TryCuda(const NetworkType& type,
                                const std::shared_ptr<const Checkpoint>& checkpoint,
                                const PolicyOptions& options) {
  if (options.backend == Backend::kCpu) return nullptr;
  if (options.backend == Backend::kCuda) {
    if (type.make_cuda == nullptr)
      throw EnvironmentError("backend cuda: " + std::string(type.no_cuda));
    return type.make_cuda(checkpoint, options);
  }
  std::string why;
  try {
    if (GpuUsable(&why)) {
      if (type.make_cuda != nullptr) return type.make_cuda(checkpoint, options);
      why = type.no_cuda;
    }
  } catch (const Error& error) {
    // a shape without a GPU kernel, or a GPU that computes wrong values; the options are valid
    const bool other = error.code() == ExitCode::kBadInput ||
                       (error.code() == ExitCode::kEnvironment &&
                        dynamic_cast<const OutOfDeviceMemory*>(&error) == nullptr);
    if (!other) throw;
    why = error.what();
  }
  if (!why.empty()) SayWhyCpu(why);
  return nullptr;
}

}  // namespace

int ResolveHoldNoise(const SamplerOptions& sampler, const Checkpoint& checkpoint,
                     int action_steps) {
  if (sampler.hold_noise != 0 || checkpoint.network->sampler().kinds.empty())
    return sampler.hold_noise;
  if (sampler.warm_start > 0) return 1;
  return std::clamp(checkpoint.config.n_action_steps / action_steps, 1, kMostHeldDecisions);
}

SamplerOptions ResolveSampler(const SamplerOptions& sampler, const Checkpoint& checkpoint) {
  const SamplerTraits traits = checkpoint.network->sampler();
  if (traits.kinds.empty()) {
    RefuseSampler(sampler, checkpoint);
    return sampler;
  }
  SamplerOptions resolved = sampler;
  if (resolved.kind == SamplerKind::kAuto) resolved.kind = traits.kind;
  if (std::ranges::find(traits.kinds, resolved.kind) == traits.kinds.end()) {
    std::string known;
    for (const SamplerKind kind : traits.kinds)
      known += (known.empty() ? "" : ", ") + std::string(SamplerName(kind));
    throw Error(ExitCode::kUsage, "sampler " + std::string(SamplerName(resolved.kind)) +
                                      ": this checkpoint of type " + checkpoint.config.type +
                                      " knows " + known);
  }
  if (resolved.steps == 0) resolved.steps = traits.steps;
  CheckRange("sampler steps", resolved.steps, 1, traits.most_steps);
  const float temperature = resolved.temperature.value_or(traits.temperature);
  if (!(temperature >= 0 && temperature <= kMostTemperature)) {
    throw Error(ExitCode::kUsage, "temperature = " + std::to_string(temperature) +
                                      ": allowed are 0 to " +
                                      std::to_string(static_cast<int>(kMostTemperature)));
  }
  resolved.temperature = temperature;
  int& window = resolved.parallel_window;
  const bool parallel = traits.parallel && resolved.kind != SamplerKind::kRk4;
  if (window != kAutoWindow)
    CheckRange("parallel window", window, 0, parallel ? traits.most_steps : 1);
  if (window == 1) window = 0;
  if (resolved.prefix) window = WithPrefix(resolved);
  CheckWarmStart(resolved);
  // whoever decides more often than the checkpoint says has resolved it
  resolved.hold_noise = ResolveHoldNoise(sampler, checkpoint, checkpoint.config.n_action_steps);
  CheckRange("hold noise", resolved.hold_noise, 1, kMostHeldDecisions);
  if (!(resolved.parallel_tolerance >= 0)) {
    throw Error(ExitCode::kUsage,
                "parallel tolerance is negative or no number: give one such as 0.01, or 0 for the "
                "default");
  }
  return resolved;
}

std::unique_ptr<Policy> Policy::Create(std::shared_ptr<const Checkpoint> checkpoint,
                                       const PolicyOptions& options) {
  const DefaultFloatEnvironment arithmetic;  // of the threads that are made here too
  const NetworkType& type = NetworkTypeOf(checkpoint->config.type);
  const PolicyOptions resolved = ResolveOptions(*checkpoint, options);
  if (auto policy = TryCuda(type, checkpoint, resolved)) return policy;
  return type.make_cpu(std::move(checkpoint), resolved);
}

}  // namespace mjp
