#ifndef PLUGIN_CACHE_H_
#define PLUGIN_CACHE_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "policy/checkpoint.h"
#include "policy/policy.h"

// Policies of this process. They outlive the plugin's instances, because a host makes and destroys
// instances at every load, reset of the window and copy of a simulation.

namespace dp {

// A policy as any number of threads may use it at once: each call borrows an idle object, and one
// more is made where all are busy. All share one checkpoint's weights.
class SharedPolicy {
 public:
  using Maker = std::function<std::unique_ptr<Policy>(std::shared_ptr<const Checkpoint>,
                                                      const PolicyOptions&)>;
  SharedPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options,
               Maker make);

  const PolicyConfig& config() const { return checkpoint_->config; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }

  // As Policy::Infer; a result depends on the input alone, not on the object that gives it.
  void Infer(const PolicyInput& input, PolicyOutput& output);
  // Makes the first object if there is none yet, so that what it cannot do is said early. Throws
  // as Policy::Create does.
  std::string Describe();

 private:
  std::unique_ptr<Policy> Borrow();
  void Return(std::unique_ptr<Policy> policy);

  std::shared_ptr<const Checkpoint> checkpoint_;
  PolicyOptions options_;
  Maker make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Policy>> idle_;
};

// The policy of a checkpoint directory with these options, loaded once per process and again
// when its files have changed. Throws Error as LoadCheckpoint does. `sampler_given` false: the
// checkpoint's own kind of sampler replaces options.sampler.kind.
std::shared_ptr<SharedPolicy> GetSharedPolicy(const std::string& directory, PolicyOptions options,
                                              bool sampler_given);

// How checkpoints and policies are made; tests put their own in place.
struct PolicyMakers {
  std::function<std::shared_ptr<const Checkpoint>(const std::string& directory)> load =
      LoadCheckpoint;
  SharedPolicy::Maker make = Policy::Create;
};

// Empties the cache and makes everything by `makers` from now on.
void SetPolicyMakers(PolicyMakers makers);

// Policies in the cache, for tests and statistics.
int CachedPolicies();

}  // namespace dp

#endif  // PLUGIN_CACHE_H_
