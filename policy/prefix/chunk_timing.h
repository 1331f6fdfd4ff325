#ifndef POLICY_PREFIX_CHUNK_TIMING_H_
#define POLICY_PREFIX_CHUNK_TIMING_H_

#include <algorithm>
#include <span>

#include "policy/checkpoint/config.h"

// Which chunk acts when, where a decision is made every `action_steps` control steps and acts
// `latency` control steps after its observation. A latency beyond action_steps means that several
// decisions are on their way.

namespace mjp {

// The longest latency: as long as a chunk still has the actions for it.
inline int MostLatency(const PolicyConfig& config, int action_steps) {
  return std::max(action_steps, config.horizon - config.FirstAction() - action_steps);
}

// How many decisions before the newest, which is `age` control steps old, the one was that acts
// now; 0: it is the newest.
inline int DecisionsAgo(int age, int latency, int action_steps) {
  return age >= latency ? 0 : (latency - age + action_steps - 1) / action_steps;
}

// Chunks that are to be kept for that, the newest included.
inline int KeptChunks(int latency, int action_steps) {
  return std::max(1, DecisionsAgo(0, latency, action_steps)) + 1;
}

// Rows of a new chunk that are executed, or were, whatever is decided: those up to its first
// action, and `latency` actions.
inline int PrefixSteps(const PolicyConfig& config, int latency) {
  return std::min(config.FirstAction() + latency, config.horizon - 1);
}

// Writes the rows of `chunk` (H, action_dim) from `ahead` on to `prefix`, of whole rows; behind its
// last row that one is repeated.
template <class Number>
void CopyAhead(std::span<const Number> chunk, int action_dim, int ahead, std::span<float> prefix) {
  const size_t last = chunk.size() / action_dim - 1;
  for (size_t i = 0; i < prefix.size(); ++i) {
    const size_t row = std::min(i / action_dim + ahead, last);
    prefix[i] = static_cast<float>(chunk[row * action_dim + i % action_dim]);
  }
}

// Writes to `plan` (H, action_dim) what is executed at the moments of a new chunk's rows as far as
// it is decided, and from there on what the newest chunk says. chunk(n), (H, action_dim): that of
// the n-th decision before the new one, from 1 on.
template <class ChunkOf>
void CopyPlan(const PolicyConfig& config, int latency, int action_steps, const ChunkOf& chunk,
              std::span<float> plan) {
  const int oldest = std::max(1, DecisionsAgo(0, latency, action_steps));
  for (int row = 0; row < config.horizon; ++row) {
    const int age = row - config.FirstAction();  // control steps after the new observation
    const int ago = std::clamp(DecisionsAgo(age, latency, action_steps), 1, oldest);
    const size_t from = std::min(row + ago * action_steps, config.horizon - 1);
    const auto actions = chunk(ago).subspan(from * config.action_dim, config.action_dim);
    for (int c = 0; c < config.action_dim; ++c)
      plan[size_t{1} * row * config.action_dim + c] = static_cast<float>(actions[c]);
  }
}

}  // namespace mjp

#endif  // POLICY_PREFIX_CHUNK_TIMING_H_
