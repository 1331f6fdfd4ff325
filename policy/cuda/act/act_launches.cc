#include "policy/cuda/act/act_launches.h"

#include <algorithm>

namespace mjp {

ActLaunches::ActLaunches(const DeviceAct& weights, const ActPolicyConfig& config, Format format,
                         int environments, const ActInputs& inputs, DeviceArena& arena)
    : weights_(weights),
      config_(config),
      format_(format),
      environments_(environments),
      launches_(format),
      encoder_(StreamOf(config.Tokens(), true), format, launches_, arena),
      decoder_(StreamOf(config.horizon, false), format, launches_, arena) {
  const size_t element = FormatBytes(format), width = config.width;
  const size_t rows = size_t{1} * environments * std::max(config.Tokens(), config.horizon);
  qkv_ = arena.TakeBytes(rows * 3 * width * element);
  queries_ = arena.TakeBytes(rows * width * element);
  context_ = arena.TakeBytes(rows * width * element);
  hidden_ = arena.TakeBytes(rows * config.feedforward * element);
  actions_ = arena.Take<float>(size_t{1} * environments * config.horizon * config.action_dim);
  PutTokens(inputs);
  Encode();
  decoder_.StartFrom(weights.start, config.horizon);
  for (size_t i = 0; i < weights.decoder.size(); ++i) DecoderLayer(i);
  if (!config.pre_norm) decoder_.Norm(weights.decoder_norm);
  const void* out = decoder_.Normed();
  decoder_.ShowNorm("decoder_out");
  launches_.Linear(weights.head, out, decoder_.rows(), actions_, TokenActivation::kNone, true);
}

TokenStream::Config ActLaunches::StreamOf(int rows, bool is_encoder) const {
  TokenStream::Config stream;
  stream.rows = environments_ * rows;
  stream.width = config_.width;
  stream.epsilon = kLayerNormEpsilon;
  stream.norms_after = !config_.pre_norm;
  std::vector<const DeviceConv*> layers;
  const auto add = [&](const DeviceActFeedForward& layer) {
    layers.push_back(&layer.linear1.layer);
    layers.push_back(&layer.linear2);
  };
  for (size_t i = 0; is_encoder && i < weights_.encoder.size(); ++i) {
    add(weights_.encoder[i].feed_forward);
    layers.push_back(&weights_.encoder[i].self.in.layer);
    layers.push_back(&weights_.encoder[i].self.out);
  }
  for (size_t i = 0; i < weights_.decoder.size(); ++i) {
    const DeviceActDecoderLayer& layer = weights_.decoder[i];
    if (is_encoder) {
      layers.push_back(&layer.cross.key_value.layer);
      continue;
    }
    add(layer.feed_forward);
    layers.push_back(&layer.cross.out);
    if (i == 0) continue;
    layers.push_back(&layer.self.in.layer);
    layers.push_back(&layer.self.out);
    layers.push_back(&layer.cross.query.layer);
  }
  stream.folds = CanFoldNorms(format_, stream.rows, layers);
  return stream;
}

void ActLaunches::PutTokens(const ActInputs& inputs) {
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
  a.x = encoder_.x();
  a.y = encoder_.y();
  launches_.Add(a);
  launches_.Show("encoder_in", a.x, true, encoder_.rows(), config_.width);
}

DeviceRows ActLaunches::Part(const void* rows, int column, int pitch, int rows_each) const {
  const auto* bytes = static_cast<const uint8_t*>(rows);
  return {bytes + column * FormatBytes(format_), pitch, int64_t{pitch} * rows_each};
}

void ActLaunches::Attend(const DeviceRows& q, const DeviceRows& k, const DeviceRows& v, int queries,
                         int keys) {
  TokenAttentionArgs a;
  a.sequences = environments_;
  a.heads = config_.heads;
  a.head_size = config_.width / config_.heads;
  a.queries = queries;
  a.keys = keys;
  a.q = q, a.k = k, a.v = v;
  a.out = context_;
  launches_.Add(a);
}

void ActLaunches::SelfAttention(const DeviceActSelf& layer, TokenStream& s) {
  const int width = config_.width, pitch = 3 * width, rows = RowsEach(s);
  s.Linear(layer.in, qkv_);
  Attend(Part(qkv_, 0, pitch, rows), Part(qkv_, width, pitch, rows),
         Part(qkv_, 2 * width, pitch, rows), rows, rows);
}

void ActLaunches::CrossAttention(const DeviceActCross& layer, const DeviceRows& queries) {
  const int width = config_.width, pitch = 2 * width, keys = RowsEach(encoder_);
  encoder_.Linear(layer.key_value, qkv_);
  Attend(queries, Part(qkv_, 0, pitch, keys), Part(qkv_, width, pitch, keys), RowsEach(decoder_),
         keys);
}

void ActLaunches::FeedForward(const DeviceActFeedForward& layer, const DeviceLayerNorm& next,
                              TokenStream& s) {
  s.Linear(layer.linear1, hidden_, config_.activation);
  s.AddAndNorm(layer.linear2, hidden_, next);
}

void ActLaunches::EncoderLayer(size_t index) {
  const DeviceActEncoderLayer& layer = weights_.encoder[index];
  const std::string name = "encoder/" + std::to_string(index);
  const bool before = config_.pre_norm, last = index + 1 == weights_.encoder.size();
  const DeviceLayerNorm& next = !before ? layer.norm2
                                : last  ? weights_.encoder_norm
                                        : weights_.encoder[index + 1].norm1;
  SelfAttention(layer.self, encoder_);
  encoder_.AddAndNorm(layer.self.out, context_, before ? layer.norm2 : layer.norm1,
                      name + "/self_attn");
  FeedForward(layer.feed_forward, next, encoder_);
  encoder_.ShowX(name);
}

void ActLaunches::Encode() {
  if (config_.pre_norm)
    encoder_.Norm(weights_.encoder.empty() ? weights_.encoder_norm : weights_.encoder[0].norm1);
  for (size_t i = 0; i < weights_.encoder.size(); ++i) EncoderLayer(i);
  encoder_.ShowNorm("encoder_out");
}

DeviceRows ActLaunches::DecoderQueries(size_t index) {
  const DeviceActDecoderLayer& layer = weights_.decoder[index];
  const int width = config_.width;
  if (index == 0) return {weights_.start_queries, width, 0};
  SelfAttention(layer.self, decoder_);
  decoder_.AddAndNorm(layer.self.out, context_, config_.pre_norm ? layer.norm2 : layer.norm1,
                      "decoder/" + std::to_string(index) + "/self_attn");
  decoder_.Linear(layer.cross.query, queries_);
  return Part(queries_, 0, width, RowsEach(decoder_));
}

void ActLaunches::DecoderLayer(size_t index) {
  const DeviceActDecoderLayer& layer = weights_.decoder[index];
  const std::string name = "decoder/" + std::to_string(index);
  const bool before = config_.pre_norm, last = index + 1 == weights_.decoder.size();
  const DeviceLayerNorm& next = !before ? layer.norm3
                                : last  ? weights_.decoder_norm
                                        : weights_.decoder[index + 1].norm1;
  CrossAttention(layer.cross, DecoderQueries(index));
  decoder_.AddAndNorm(layer.cross.out, context_, before ? layer.norm3 : layer.norm2,
                      name + "/multihead_attn");
  FeedForward(layer.feed_forward, next, decoder_);
  decoder_.ShowX(name);
}

}  // namespace mjp
