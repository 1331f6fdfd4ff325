#include "policy/act/act_transformer.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/transformer/attention_weights.h"

namespace mjp::cpu {
namespace {

AlignedBuffer Copy(const AlignedBuffer& from, size_t size) {
  AlignedBuffer copy(size);
  std::copy_n(from.data(), size, copy.data());
  return copy;
}

}  // namespace

ActTransformer::ActTransformer(std::shared_ptr<const PackedAct> weights,
                               const ActPolicyConfig& config, int environments, ThreadPool& pool)
    : weights_(std::move(weights)), config_(config), pool_(pool) {
  const size_t tokens = config.Tokens(), chunk = config.horizon, width = config.width;
  const size_t rows = environments * std::max(tokens, chunk);
  x_ = AlignedBuffer(environments * tokens * width);
  y_ = AlignedBuffer(environments * chunk * width);
  qkv_ = AlignedBuffer(rows * 3 * width);
  context_ = AlignedBuffer(rows * width);
  branch_ = AlignedBuffer(rows * width);
  hidden_ = AlignedBuffer(rows * config.feedforward);
  normed_ = AlignedBuffer(rows * width);
  queries_ = AlignedBuffer(environments * chunk * width);
  AttentionArgs largest;
  largest.head_size = config.width / config.heads;
  largest.queries = largest.keys = static_cast<int>(std::max(tokens, chunk));
  scratch_ = MakeAttentionScratch(pool, largest);
  StartDecoder();
}

void ActTransformer::Normalize(const PackedLayerNorm& norm, const float* x, int rows, float* y) {
  LayerNormArgs args;
  args.x = x;
  args.y = y;
  args.x_pitch = args.y_pitch = args.width = config_.width;
  args.weight = norm.weight.data();
  args.bias = norm.bias.data();
  NormTokens(pool_, args, count_ * rows);
}

const float* ActTransformer::Before(const PackedLayerNorm& norm, const float* x, int rows) {
  if (!config_.pre_norm) return x;
  Normalize(norm, x, rows, normed_.data());
  return normed_.data();
}

void ActTransformer::After(const PackedLayerNorm& norm, float* x, int rows) {
  ResidualArgs args;
  args.y = x;
  args.x = branch_.data();
  args.y_pitch = args.x_pitch = args.width = config_.width;
  AddTokens(pool_, args, count_ * rows);
  if (!config_.pre_norm) Normalize(norm, x, rows, x);
}

void ActTransformer::AddPositions(const AlignedBuffer& positions, int width, int rows, float* y,
                                  int64_t pitch) {
  for (int n = 0; n < count_; ++n) {
    ResidualArgs args;
    args.y = y + n * rows * pitch;
    args.y_pitch = pitch;
    args.x = positions.data();
    args.x_pitch = args.width = width;
    AddTokens(pool_, args, rows);
  }
}

void ActTransformer::SelfAttention(const PackedSelfAttention& layer, const float* x, int rows) {
  const int width = config_.width;
  const int64_t pitch = 3 * int64_t{width};
  LinearTokens(pool_, layer.in, x, width, count_ * rows, TokenActivation::kNone, qkv_.data(),
               pitch);
  AddPositions(layer.positions, 2 * width, rows, qkv_.data(), pitch);
  AttentionArgs args;
  args.sequences = count_;
  args.heads = config_.heads;
  args.head_size = width / config_.heads;
  args.queries = args.keys = rows;
  args.q = {qkv_.data(), pitch, rows * pitch};
  args.k = {qkv_.data() + width, pitch, rows * pitch};
  args.v = {qkv_.data() + 2 * width, pitch, rows * pitch};
  args.out = context_.data();
  args.out_pitch = width;
  args.out_batch = int64_t{rows} * width;
  Attend(pool_, args, scratch_);
  LinearTokens(pool_, layer.out, context_.data(), width, count_ * rows, TokenActivation::kNone,
               branch_.data(), width);
}

void ActTransformer::Queries(const PackedCrossAttention& layer, const float* x) {
  LinearTokens(pool_, layer.query, x, config_.width, count_ * config_.horizon,
               TokenActivation::kNone, queries_.data(), config_.width);
  AddPositions(layer.query_positions, config_.width, config_.horizon, queries_.data(),
               config_.width);
}

void ActTransformer::CrossAttention(const PackedCrossAttention& layer, const TokenRows& queries,
                                    float* attention) {
  const int width = config_.width, tokens = config_.Tokens(), chunk = config_.horizon;
  const int64_t pitch = 2 * int64_t{width};
  LinearTokens(pool_, layer.key_value, x_.data(), width, count_ * tokens, TokenActivation::kNone,
               qkv_.data(), pitch);
  AddPositions(layer.key_positions, width, tokens, qkv_.data(), pitch);
  AttentionArgs args;
  args.sequences = count_;
  args.heads = config_.heads;
  args.head_size = width / config_.heads;
  args.queries = chunk;
  args.keys = tokens;
  args.q = queries;
  args.k = {qkv_.data(), pitch, tokens * pitch};
  args.v = {qkv_.data() + width, pitch, tokens * pitch};
  args.out = context_.data();
  args.out_pitch = width;
  args.out_batch = int64_t{chunk} * width;
  if (attention != nullptr) MeanAttentionWeights(args, attention);
  Attend(pool_, args, scratch_);
  LinearTokens(pool_, layer.out, context_.data(), width, count_ * chunk, TokenActivation::kNone,
               branch_.data(), width);
}

void ActTransformer::FeedForward(const PackedFeedForward& layer, const float* x, int rows) {
  const int width = config_.width, between = config_.feedforward;
  LinearTokens(pool_, layer.linear1, x, width, count_ * rows, config_.activation, hidden_.data(),
               between);
  LinearTokens(pool_, layer.linear2, hidden_.data(), between, count_ * rows, TokenActivation::kNone,
               branch_.data(), width);
}

void ActTransformer::EncoderLayer(size_t index, const ActTap& tap) {
  const PackedActEncoderLayer& layer = weights_->encoder[index];
  const int tokens = config_.Tokens(), width = config_.width;
  const std::string name = "encoder/" + std::to_string(index);
  SelfAttention(layer.self, Before(layer.norm1, x_.data(), tokens), tokens);
  if (tap) tap(name + "/self_attn", branch_.data(), tokens, width);
  After(layer.norm1, x_.data(), tokens);
  FeedForward(layer.feed_forward, Before(layer.norm2, x_.data(), tokens), tokens);
  After(layer.norm2, x_.data(), tokens);
  if (tap) tap(name, x_.data(), tokens, width);
}

void ActTransformer::StartDecoder() {
  const PackedActDecoderLayer& layer = weights_->decoder.front();
  const int chunk = config_.horizon;
  const size_t size = size_t{1} * chunk * config_.width;
  count_ = 1;  // y_ is zero
  SelfAttention(layer.self, Before(layer.norm1, y_.data(), chunk), chunk);
  start_attention_ = Copy(branch_, size);
  After(layer.norm1, y_.data(), chunk);
  start_ = Copy(y_, size);
  Queries(layer.cross, Before(layer.norm2, y_.data(), chunk));
  start_queries_ = Copy(queries_, size);
}

void ActTransformer::DecoderLayer(size_t index, const ActTap& tap) {
  const PackedActDecoderLayer& layer = weights_->decoder[index];
  const int chunk = config_.horizon, width = config_.width;
  const int64_t size = int64_t{chunk} * width;
  const std::string name = "decoder/" + std::to_string(index);
  if (index == 0) {
    for (int n = 0; n < count_; ++n) {
      std::copy_n(start_attention_.data(), size, branch_.data() + n * size);
      std::copy_n(start_.data(), size, y_.data() + n * size);
    }
  } else {
    SelfAttention(layer.self, Before(layer.norm1, y_.data(), chunk), chunk);
  }
  if (tap) {
    tap(name + "/self_attn", branch_.data(), chunk, width);
    attention_.resize(size_t{1} * count_ * chunk * config_.Tokens());
  }
  float* attention = tap ? attention_.data() : nullptr;
  if (index == 0) {
    CrossAttention(layer.cross, {start_queries_.data(), width, 0}, attention);
  } else {
    After(layer.norm1, y_.data(), chunk);
    Queries(layer.cross, Before(layer.norm2, y_.data(), chunk));
    CrossAttention(layer.cross, {queries_.data(), width, size}, attention);
  }
  if (tap) {
    tap(name + "/attention", attention, chunk, config_.Tokens());
    tap(name + "/multihead_attn", branch_.data(), chunk, width);
  }
  After(layer.norm2, y_.data(), chunk);
  FeedForward(layer.feed_forward, Before(layer.norm3, y_.data(), chunk), chunk);
  After(layer.norm3, y_.data(), chunk);
  if (tap) tap(name, y_.data(), chunk, width);
}

void ActTransformer::Run(int environments, float* actions, const ActTap& tap) {
  count_ = environments;
  const int tokens = config_.Tokens(), chunk = config_.horizon, width = config_.width;
  if (tap) tap("encoder_in", x_.data(), tokens, width);
  for (size_t i = 0; i < weights_->encoder.size(); ++i) EncoderLayer(i, tap);
  if (weights_->encoder_norm) Normalize(*weights_->encoder_norm, x_.data(), tokens, x_.data());
  if (tap) tap("encoder_out", x_.data(), tokens, width);
  for (size_t i = 0; i < weights_->decoder.size(); ++i) DecoderLayer(i, tap);
  Normalize(weights_->decoder_norm, y_.data(), chunk, y_.data());
  if (tap) tap("decoder_out", y_.data(), chunk, width);
  LinearTokens(pool_, weights_->head, y_.data(), width, count_ * chunk, TokenActivation::kNone,
               actions, config_.action_dim);
}

}  // namespace mjp::cpu
