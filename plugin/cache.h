#ifndef PLUGIN_CACHE_H_
#define PLUGIN_CACHE_H_

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugin/decision_cache.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/policy.h"

// Policies of this process. They outlive the plugin's instances, because a host makes and destroys
// instances at every load, reset of the window and copy of a simulation.

namespace mjp {

// A policy as any number of threads may use it at once: each call borrows an idle object, and one
// more is made where all are busy. All share one checkpoint's weights.
class SharedPolicy : public std::enable_shared_from_this<SharedPolicy> {
 public:
  using Maker = std::function<std::unique_ptr<Policy>(std::shared_ptr<const Checkpoint>,
                                                      const PolicyOptions&)>;
  SharedPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options,
               Maker make, size_t remembered_decisions);

  const PolicyConfig& config() const { return checkpoint_->config; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }

  // As Policy::Infer for one environment; a result depends on the input alone, not on the object
  // that gives it. The last decisions are remembered and not made again.
  void Infer(const PolicyInput& input, PolicyOutput& output);
  // Begins a decision on a thread of its own, for Infer to find. The future is ready when that
  // thread has finished, with or without a result; its destructor waits.
  std::future<void> Prefetch(const PolicyInput& input);
  // Makes the first object if there is none yet, so that what it cannot do is said early. Throws
  // as Policy::Create does.
  std::string Describe();
  // Where it runs, never kAuto. Throws as Policy::Create does.
  Backend backend();

 private:
  std::unique_ptr<Policy> Borrow();
  void Return(std::unique_ptr<Policy> policy);
  void Make(Decision& decision);

  std::shared_ptr<const Checkpoint> checkpoint_;
  PolicyOptions options_;
  Maker make_;
  DecisionMemo memo_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Policy>> idle_;
  std::optional<Backend> backend_;  // known once there is an object
};

// The policy of a checkpoint directory with these options, loaded once per process and again
// when its files have changed. Throws Error as LoadCheckpoint does. `sampler_given` false: the
// checkpoint's own kind of sampler replaces options.sampler.kind. `action_steps`: executed per
// decision, 0 as the checkpoint says; options.sampler.hold_noise is resolved for it.
std::shared_ptr<SharedPolicy> GetSharedPolicy(const std::string& directory, PolicyOptions options,
                                              bool sampler_given, int action_steps);

// How checkpoints and policies are made; tests and viewers put their own in place.
struct PolicyMakers {
  std::string directory;  // of the checkpoint, in place of the one that models name; empty: none
  std::function<std::shared_ptr<const Checkpoint>(const std::string& directory)> load =
      LoadCheckpoint;
  SharedPolicy::Maker make = Policy::Create;
  size_t remembered_decisions = 8;  // of each policy; 0: every call makes a decision
};

// Empties the cache and makes everything by `makers` from now on.
void SetPolicyMakers(PolicyMakers makers);

// Policies in the cache, for tests and statistics.
int CachedPolicies();

}  // namespace mjp

#endif  // PLUGIN_CACHE_H_
