#include "policy/cuda/act/act_launches.h"

#include <algorithm>

namespace mjp {

ActLaunches::ActLaunches(const DeviceAct& weights, const ActPolicyConfig& config, Format format,
                         int environments, const ActInputs& inputs, DeviceArena& arena)
    : weights_(weights),
      config_(config),
      format_(format),
      environments_(environments),
      launches_(format) {
  const size_t element = FormatBytes(format), width = config.width;
  const size_t rows = size_t{1} * environments * std::max(config.Tokens(), config.horizon);
  qkv_ = arena.TakeBytes(rows * 3 * width * element);
  queries_ = arena.TakeBytes(rows * width * element);
  context_ = arena.TakeBytes(rows * width * element);
  branch_ = arena.TakeBytes(rows * width * element);
  hidden_ = arena.TakeBytes(rows * config.feedforward * element);
  actions_ = arena.Take<float>(size_t{1} * environments * config.horizon * config.action_dim);
  Stream encoder = TakeStream(config.Tokens(), arena), decoder = TakeStream(config.horizon, arena);
  PutTokens(inputs, encoder);
  Encode(encoder);
  Decode(encoder, decoder);
}

ActLaunches::Stream ActLaunches::TakeStream(int rows, DeviceArena& arena) {
  const size_t size = size_t{1} * environments_ * rows * config_.width;
  Stream s;
  s.rows = rows;
  s.x = arena.Take<float>(size);
  s.y = arena.TakeBytes(size * FormatBytes(format_));
  s.from = s.x;
  return s;
}

void ActLaunches::PutTokens(const ActInputs& inputs, const Stream& s) {
  TokensArgs a;
  a.sequences = environments_;
  a.width = config_.width;
  for (const VectorToken& vector : weights_.vectors) a.vector[a.vectors++] = vector;
  int next = 1;
  if (config_.state_dim > 0) a.vector[next++].values = inputs.state;
  if (config_.environment_dim > 0) a.vector[next].values = inputs.environment;
  a.maps = static_cast<int>(config_.cameras.size());
  a.cells = a.maps == 0 ? 0 : (config_.Tokens() - config_.VectorTokens()) / a.maps;
  a.map = inputs.maps;
  a.x = s.x;
  a.y = s.y;
  launches_.Add(a);
  launches_.Show("encoder_in", s.x, true, Rows(s), config_.width);
}

void ActLaunches::Norm(const DeviceLayerNorm& norm, Stream& s) {
  TokenNormArgs a;
  a.rows = Rows(s);
  a.width = config_.width;
  a.x = s.from;
  a.x_rows = s.from_rows;
  a.branch = s.branch;
  a.weight = norm.weight;
  a.bias = norm.bias;
  (config_.pre_norm ? a.sum : a.normed) = s.x;
  a.y = s.y;
  launches_.Add(a);
  if (!s.name.empty()) launches_.Show(s.name, s.x, true, Rows(s), config_.width);
  s.name.clear();
  s.from = s.x;
  s.from_rows = 0;
  s.branch = nullptr;
}

DeviceRows ActLaunches::Part(const void* rows, int column, int pitch, int rows_each) const {
  const auto* bytes = static_cast<const uint8_t*>(rows);
  return {bytes + column * FormatBytes(format_), pitch, int64_t{pitch} * rows_each};
}

void ActLaunches::Attend(const DeviceRows& q, const DeviceRows& k, const DeviceRows& v, int queries,
                         int keys, const DeviceConv& out) {
  TokenAttentionArgs a;
  a.sequences = environments_;
  a.heads = config_.heads;
  a.head_size = config_.width / config_.heads;
  a.queries = queries;
  a.keys = keys;
  a.q = q, a.k = k, a.v = v;
  a.out = context_;
  launches_.Add(a);
  launches_.Linear(out, context_, environments_ * queries, branch_);
}

void ActLaunches::SelfAttention(const DeviceActSelf& layer, Stream& s) {
  const int width = config_.width, pitch = 3 * width;
  launches_.Linear(layer.in.layer, s.y, Rows(s), qkv_, TokenActivation::kNone, false,
                   layer.in.row_bias, layer.in.rows);
  Attend(Part(qkv_, 0, pitch, s.rows), Part(qkv_, width, pitch, s.rows),
         Part(qkv_, 2 * width, pitch, s.rows), s.rows, s.rows, layer.out);
  s.branch = branch_;
}

void ActLaunches::CrossAttention(const DeviceActCross& layer, const DeviceRows& queries,
                                 const Stream& encoder, Stream& s) {
  const int width = config_.width, pitch = 2 * width;
  launches_.Linear(layer.key_value.layer, encoder.y, Rows(encoder), qkv_, TokenActivation::kNone,
                   false, layer.key_value.row_bias, layer.key_value.rows);
  Attend(queries, Part(qkv_, 0, pitch, encoder.rows), Part(qkv_, width, pitch, encoder.rows),
         s.rows, encoder.rows, layer.out);
  s.branch = branch_;
}

void ActLaunches::FeedForward(const DeviceActFeedForward& layer, Stream& s) {
  launches_.Linear(layer.linear1, s.y, Rows(s), hidden_, config_.activation);
  launches_.Linear(layer.linear2, hidden_, Rows(s), branch_);
  s.branch = branch_;
}

void ActLaunches::Encode(Stream& s) {
  const bool before = config_.pre_norm;
  for (size_t i = 0; i < weights_.encoder.size(); ++i) {
    const DeviceActEncoderLayer& layer = weights_.encoder[i];
    const std::string name = "encoder/" + std::to_string(i);
    if (before) Norm(layer.norm1, s);
    SelfAttention(layer.self, s);
    launches_.Show(name + "/self_attn", branch_, false, Rows(s), config_.width);
    Norm(before ? layer.norm2 : layer.norm1, s);
    FeedForward(layer.feed_forward, s);
    s.name = name;
    if (!before) Norm(layer.norm2, s);
  }
  if (before) Norm(weights_.encoder_norm, s);
  launches_.Show("encoder_out", s.y, false, Rows(s), config_.width);
}

void ActLaunches::DecoderLayer(size_t index, const Stream& encoder, Stream& s) {
  const DeviceActDecoderLayer& layer = weights_.decoder[index];
  const bool before = config_.pre_norm;
  const std::string name = "decoder/" + std::to_string(index);
  const int width = config_.width;
  DeviceRows queries = {weights_.start_queries, width, 0};
  if (index == 0) {
    s.from = weights_.start;
    s.from_rows = s.rows;
  } else {
    if (before) Norm(layer.norm1, s);
    SelfAttention(layer.self, s);
    launches_.Show(name + "/self_attn", branch_, false, Rows(s), width);
    Norm(before ? layer.norm2 : layer.norm1, s);
    launches_.Linear(layer.cross.query.layer, s.y, Rows(s), queries_, TokenActivation::kNone, false,
                     layer.cross.query.row_bias, layer.cross.query.rows);
    queries = Part(queries_, 0, width, s.rows);
  }
  CrossAttention(layer.cross, queries, encoder, s);
  launches_.Show(name + "/multihead_attn", branch_, false, Rows(s), width);
  Norm(before ? layer.norm3 : layer.norm2, s);
  FeedForward(layer.feed_forward, s);
  s.name = name;
  if (!before) Norm(layer.norm3, s);
}

void ActLaunches::Decode(const Stream& encoder, Stream& s) {
  for (size_t i = 0; i < weights_.decoder.size(); ++i) DecoderLayer(i, encoder, s);
  Norm(weights_.decoder_norm, s);
  launches_.Show("decoder_out", s.y, false, Rows(s), config_.width);
  launches_.Linear(weights_.head, s.y, Rows(s), actions_, TokenActivation::kNone, true);
}

}  // namespace mjp
