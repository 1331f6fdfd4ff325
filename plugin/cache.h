#ifndef PLUGIN_CACHE_H_
#define PLUGIN_CACHE_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fork.h"
#include "plugin/decision_cache.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/policy.h"

// Policies of this process. They outlive the plugin's instances, because a host makes and destroys
// instances at every load, reset of the window and copy of a simulation.

namespace mjp {

// A decision on a thread of its own. What holds it waits for its end, but for a child made by
// fork(), which has no such thread.
class UnderWay {
 public:
  UnderWay() = default;
  explicit UnderWay(std::future<void> end) : end_(std::move(end)) {}
  UnderWay(UnderWay&&) = default;
  UnderWay& operator=(UnderWay&& other) noexcept;
  ~UnderWay() { Leave(); }

 private:
  void Leave();

  std::future<void> end_;
  uint64_t generation_ = ForkGeneration();
};

// A policy as any number of threads may use it at once: each call borrows an idle object, and one
// more is made where all are busy. All share one checkpoint's weights.
class SharedPolicy : public std::enable_shared_from_this<SharedPolicy> {
 public:
  using Maker = std::function<std::unique_ptr<Policy>(std::shared_ptr<const Checkpoint>,
                                                      const PolicyOptions&)>;
  SharedPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options,
               Maker make, size_t remembered_decisions);
  ~SharedPolicy();
  SharedPolicy(const SharedPolicy&) = delete;
  SharedPolicy& operator=(const SharedPolicy&) = delete;

  const PolicyConfig& config() const { return checkpoint_->config; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }

  // As Policy::Infer for one environment; a result depends on the input alone, not on the object
  // that gives it. The last decisions are remembered and not made again.
  void Infer(const PolicyInput& input, PolicyOutput& output);
  // Begins a decision on a thread of its own, for Infer to find.
  UnderWay Prefetch(const PolicyInput& input);
  // Makes the first object if there is none yet, so that what it cannot do is said early. Throws
  // as Policy::Create does.
  std::string Describe();
  // Where it runs, never kAuto. Throws as Policy::Create does.
  Backend backend();
  // Policy::device_ordinal(). Throws as Policy::Create does.
  int device_ordinal();

 private:
  // What the threads of one process share. A child made by fork() has its own: threads, locks and
  // decisions of the parent's would never come to an end in it.
  struct Workshop {
    Workshop(size_t remembered, bool had_gpu) : gpu_is_lost(had_gpu), memo(remembered) {}

    const uint64_t generation = ForkGeneration();
    const bool gpu_is_lost;  // a process before this one had it
    DecisionMemo memo;
    std::mutex mutex;
    std::vector<std::unique_ptr<Policy>> idle;
    std::optional<Backend> backend;  // known, as is the next, once there is an object
    int device_ordinal = -1;
  };
  Workshop& Here();
  std::unique_ptr<Policy> Borrow();
  void Return(std::unique_ptr<Policy> policy);
  void Make(Decision& decision);

  std::shared_ptr<const Checkpoint> checkpoint_;
  PolicyOptions options_;
  Maker make_;
  size_t remembered_;
  std::atomic<Workshop*> workshop_;  // of this process, or of one before a fork()
};

// There is no checkpoint directory where one was looked for.
class NoCheckpoint : public Error {
 public:
  NoCheckpoint(const std::string& directory, const std::string& searched)
      : Error(ExitCode::kBadInput, "there is no checkpoint directory " + searched),
        directory_(directory) {}
  const std::string& directory() const { return directory_; }  // as it was asked for

 private:
  std::string directory_;
};

// The policy of a checkpoint directory with these options, loaded once per process and again
// when its files have changed. Throws NoCheckpoint, and Error as LoadCheckpoint does.
// `action_steps`: executed per decision, 0 as the checkpoint says; options.sampler.hold_noise is
// resolved for it. A relative directory is looked for in each of `folders`, in the working
// directory, then among the project's assets.
std::shared_ptr<SharedPolicy> GetSharedPolicy(const std::string& directory,
                                              const std::vector<std::filesystem::path>& folders,
                                              PolicyOptions options, int action_steps);

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
