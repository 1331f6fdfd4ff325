#ifndef POLICY_ACT_ACT_TRANSFORMER_H_
#define POLICY_ACT_ACT_TRANSFORMER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policy/act/packed_act.h"
#include "policy/cpu/tokens.h"

namespace mjp::cpu {

// Is shown intermediates by the goldens' names: (environments, rows, width) values. An empty one
// costs nothing.
using ActTap =
    std::function<void(const std::string& name, const float* values, int rows, int width)>;

// ACT's transformer on the CPU: tokens of some environments in, their chunks out.
class ActTransformer {
 public:
  // Makes room for `environments` at a time.
  ActTransformer(std::shared_ptr<const PackedAct> weights, const ActPolicyConfig& config,
                 int environments, ThreadPool& pool);

  // Where the tokens are to be put: (environments, tokens, width). Run replaces them.
  float* tokens() { return x_.data(); }
  // What the first decoder layer leaves before an observation comes, (horizon, width): the stream
  // after its self-attention, and the queries of its cross-attention.
  const float* start() const { return start_.data(); }
  const float* start_queries() const { return start_queries_.data(); }
  // actions (environments, horizon, action_dim), normalised.
  void Run(int environments, float* actions, const ActTap& tap);

 private:
  // branch_ = a sub-layer's answer to x, which has `rows` rows of each environment
  void SelfAttention(const PackedSelfAttention& layer, const float* x, int rows);
  // attention (environments, horizon, tokens): what it mixes by; null: not asked for
  void CrossAttention(const PackedCrossAttention& layer, const TokenRows& queries,
                      float* attention);
  void FeedForward(const PackedFeedForward& layer, const float* x, int rows);

  // What a sub-layer reads: x, or with pre-norm its norm, in normed_.
  const float* Before(const PackedLayerNorm& norm, const float* x, int rows);
  // x += branch_, and without pre-norm the norm of that.
  void After(const PackedLayerNorm& norm, float* x, int rows);

  void Normalize(const PackedLayerNorm& norm, const float* x, int rows, float* y);
  void AddPositions(const AlignedBuffer& positions, int width, int rows, float* y, int64_t pitch);
  void Queries(const PackedCrossAttention& layer, const float* x);
  void EncoderLayer(size_t index, const ActTap& tap);
  void DecoderLayer(size_t index, const ActTap& tap);
  // The first decoder layer up to the queries of its cross-attention: it reads zeros.
  void StartDecoder();

  std::shared_ptr<const PackedAct> weights_;
  ActPolicyConfig config_;
  ThreadPool& pool_;
  int count_ = 0;    // environments of the current Run
  AlignedBuffer x_;  // (environments, tokens, width)
  AlignedBuffer y_;  // (environments, horizon, width)
  AlignedBuffer qkv_, context_, branch_, hidden_, normed_, queries_;
  AlignedBuffer scratch_;         // of Attend
  std::vector<float> attention_;  // (environments, horizon, tokens), while it is tapped
  // of one environment: the first decoder layer's self-attention, what it leaves, its queries
  AlignedBuffer start_attention_, start_, start_queries_;
};

}  // namespace mjp::cpu

#endif  // POLICY_ACT_ACT_TRANSFORMER_H_
