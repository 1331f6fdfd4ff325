#ifndef PLUGIN_POLICIES_DECISION_CACHE_H_
#define PLUGIN_POLICIES_DECISION_CACHE_H_

#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "policy/policy.h"

namespace mjp {

// One decision of a policy: everything it depends on, and its result once that is there.
class Decision {
 public:
  // Copies the pictures and numbers of `input`, which must be of one environment; of pictures in a
  // GPU's memory it keeps handles.
  explicit Decision(const PolicyInput& input);
  Decision(const Decision&) = delete;
  Decision& operator=(const Decision&) = delete;

  // A view of the copies.
  PolicyInput input() const;
  // True if `input` is known to be the same to the last bit.
  bool Answers(const PolicyInput& input) const;

  // To be called once, by whoever makes the result.
  void Finish(PolicyOutput output) { promise_.set_value(std::move(output)); }
  void Fail(std::exception_ptr failure) { promise_.set_exception(std::move(failure)); }
  // Waits for the result; throws what its making threw.
  const PolicyOutput& Wait() const { return result_.get(); }

 private:
  NoiseKey key_;
  std::vector<uint8_t> frames_;
  std::vector<std::byte> scenes_;
  std::vector<std::shared_ptr<const GpuPicture>> gpu_pictures_;
  std::vector<float> state_, environment_, prefix_, x_start_;
  std::vector<int> prefix_steps_;
  std::promise<PolicyOutput> promise_;
  std::shared_future<PolicyOutput> result_;
};

// The last decisions of a policy, made or under way, so that a viewer's copy of a simulation, or a
// caller that asked early, does not have them made twice. Thread-safe.
class DecisionCache {
 public:
  explicit DecisionCache(size_t capacity) : capacity_(capacity) {}

  // The decision for `input`; `second` is true if it is new: the caller must then make its result.
  std::pair<std::shared_ptr<Decision>, bool> FindOrAdd(const PolicyInput& input);
  // A decision that failed is not remembered.
  void Forget(const Decision* decision);

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Decision>> decisions_;  // oldest first
};

}  // namespace mjp

#endif  // PLUGIN_POLICIES_DECISION_CACHE_H_
