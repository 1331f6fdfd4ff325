#ifndef PLUGIN_POLICIES_SHARED_POLICY_H_
#define PLUGIN_POLICIES_SHARED_POLICY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/fork.h"
#include "plugin/policies/decision_cache.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/policy.h"

namespace mjp {

// A decision that was begun, and the thread that makes it, if it has one. What holds it waits for
// that thread's end, but for a child made by fork(), which has no such thread.
class UnderWay {
 public:
  UnderWay() = default;
  explicit UnderWay(std::shared_ptr<const Decision> decision, std::future<void> end = {})
      : decision_(std::move(decision)), end_(std::move(end)) {}
  UnderWay(UnderWay&&) = default;
  UnderWay& operator=(UnderWay&& other) noexcept;
  ~UnderWay() { Leave(); }

  // Null: none was begun, or only in a process before this one.
  const Decision* decision() const {
    return generation_ == ForkGeneration() ? decision_.get() : nullptr;
  }

 private:
  void Leave();

  std::shared_ptr<const Decision> decision_;
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
  // Begins a decision on a thread of its own, unless it is remembered.
  UnderWay Prefetch(const PolicyInput& input);
  // Makes the first object if there is none yet, so that what it cannot do is said early. Throws
  // as Policy::Create does.
  std::string Describe();
  // Where it runs, never kAuto. Throws as Policy::Create does.
  Backend backend();
  // What the policy's noise deviates by. Throws as Policy::Create does.
  float temperature();
  // Policy::device_ordinal(). Throws as Policy::Create does.
  int device_ordinal();

 private:
  // What the threads of one process share. A child made by fork() has its own: threads, locks and
  // decisions of the parent's would never come to an end in it.
  struct ProcessState {
    ProcessState(size_t remembered, bool had_gpu) : gpu_is_lost(had_gpu), decisions(remembered) {}

    const uint64_t generation = ForkGeneration();
    const bool gpu_is_lost;  // a process before this one had it
    DecisionCache decisions;
    std::mutex mutex;
    std::vector<std::unique_ptr<Policy>> idle;
    std::optional<PolicyOptions> options;  // resolved; known, as is the next, with an object
    int device_ordinal = -1;
  };
  ProcessState& StateOfThisProcess();
  // The options as a policy resolved them.
  PolicyOptions Resolved();
  std::unique_ptr<Policy> Borrow();
  void Return(std::unique_ptr<Policy> policy);
  void Make(Decision& decision);

  std::shared_ptr<const Checkpoint> checkpoint_;
  PolicyOptions options_;
  Maker make_;
  size_t remembered_;
  std::atomic<ProcessState*> state_;  // of this process, or of one before a fork()
};

}  // namespace mjp

#endif  // PLUGIN_POLICIES_SHARED_POLICY_H_
