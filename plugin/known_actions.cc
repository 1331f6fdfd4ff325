// What a decision of the plugin knows of its own chunk.

#include <algorithm>

#include "plugin/policy_instance.h"
#include "policy/prefix/chunk_timing.h"
#include "policy/prefix/moment_noise.h"

namespace mjp {

// What of the chunk that is pending is known: what the chunk that acts meanwhile goes on with, or
// with a warm start what is executed in fact, and the plan behind that.
void PolicyInstance::AddPrefix(int latency, const InstanceState& state, PolicyInput& input) {
  const PolicyConfig& policy = policy_->config();
  const int ago = std::max(1, DecisionsAgo(0, latency, action_steps_));
  const bool known = state.chunks() > ago, warm = config_.policy.sampler.warm_start > 0;
  prefix_steps_ = known ? PrefixSteps(policy, latency) : 0;
  prefix_.resize(shape_.chunk);
  if (known && warm) {
    const auto chunk = [&](int n) { return state.chunk(n); };
    CopyPlan(policy, latency, action_steps_, chunk, prefix_);
  } else if (known) {
    CopyAhead(state.chunk(ago), policy.action_dim, ago * action_steps_,
              std::span(prefix_).first(size_t{1} * prefix_steps_ * policy.action_dim));
  }
  if (warm) {
    start_.resize(shape_.chunk);
    FillMomentNoise(policy, key_.seed, key_.decision, action_steps_, policy_->temperature(),
                    start_);
    input.x_start = start_;
  }
  input.prefix = prefix_;
  input.prefix_steps = {&prefix_steps_, 1};
}

}  // namespace mjp
