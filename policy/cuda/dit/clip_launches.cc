#include "policy/cuda/dit/clip_launches.h"

namespace mjp {
namespace {

constexpr int kPixelChannels = 8;  // of a prepared pixel, of which five are zeros

TokenStream::Config StreamOf(const DeviceVision& weights, const ClipConfig& clip, Format format,
                             int tokens) {
  TokenStream::Config config = {tokens, clip.vision.width, clip.vision.epsilon, false, true};
  for (const DeviceClipLayer& layer : weights.layers)
    config.folds =
        config.folds &&
        CanFoldNorms(format, tokens, {&layer.qkv.layer, &layer.out, &layer.fc1.layer, &layer.fc2});
  return config;
}

}  // namespace

ClipLaunches::ClipLaunches(const DeviceVision& weights, const ClipConfig& clip, Format format,
                           int frames, float* features, DeviceArena& arena)
    : clip_(clip),
      frames_(frames),
      tokens_(frames * clip.VisionTokens()),
      element_(FormatBytes(format)),
      launches_(format),
      stream_(StreamOf(weights, clip, format, tokens_), format, launches_, arena) {
  const size_t width = clip.vision.width, size = tokens_ * width;
  input_ = arena.TakeBytes(size_t{kPixelChannels} * frames * clip.image * clip.image * element_);
  patches_ = arena.TakeBytes(size * element_);
  qkv_ = arena.TakeBytes(3 * size * element_);
  heads_ = arena.TakeBytes(size * element_);
  branch_ = arena.TakeBytes(frames * width * element_);
  normed_ = arena.TakeBytes(frames * width * element_);
  hidden_ = arena.TakeBytes(size_t{1} * tokens_ * clip.vision.mlp * element_);
  Embed(weights);
  stream_.Norm(weights.layers.front().norm1);
  for (size_t i = 0; i + 1 < weights.layers.size(); ++i)
    Layer(weights.layers[i], weights.layers[i + 1].norm1);
  LastLayer(weights.layers.back(), features);
}

void ClipLaunches::Embed(const DeviceVision& weights) {
  ConvArgs patches;
  patches.shape = weights.patches.shape;
  patches.shape.batch = frames_;
  patches.shape.in_h = patches.shape.in_w = clip_.image;
  patches.shape.out_h = patches.shape.out_w = clip_.image / clip_.patch;
  patches.x = input_;
  patches.weight = weights.patches.weight;
  patches.y = patches_;
  launches_.Add(patches);
  TokensArgs tokens;
  tokens.sequences = frames_;
  tokens.width = clip_.vision.width;
  tokens.vectors = 1;
  tokens.vector[0] = weights.class_token;
  tokens.maps = 1;
  tokens.cells = clip_.Patches();
  tokens.map = patches_;
  tokens.positions = weights.positions;
  tokens.x = stream_.x();
  launches_.Add(tokens);
  TokenNormArgs norm = stream_.NormArgs(weights.pre_norm);
  norm.normed = stream_.x();
  launches_.Add(norm);
}

void ClipLaunches::Layer(const DeviceClipLayer& layer, const DeviceLayerNorm& next_norm) {
  stream_.Linear(layer.qkv, qkv_);
  launches_.Add(Attention(clip_.VisionTokens()));
  stream_.AddAndNorm(layer.out, heads_, layer.norm2);
  stream_.Linear(layer.fc1, hidden_, clip_.vision.activation);
  stream_.AddAndNorm(layer.fc2, hidden_, next_norm);
}

// The class tokens alone, which stand VisionTokens() rows apart in the stream.
void ClipLaunches::LastLayer(const DeviceClipLayer& layer, float* features) {
  stream_.Linear(layer.qkv, qkv_);
  launches_.Add(Attention(1));
  launches_.Linear(layer.out, heads_, frames_, branch_);
  TokenNormArgs norm = stream_.NormArgs(layer.norm2);
  norm.rows = frames_;
  norm.x_pitch = int64_t{1} * clip_.VisionTokens() * norm.width;
  norm.branch = branch_, norm.sum = features, norm.y = normed_;
  launches_.Add(norm);
  launches_.Linear(layer.fc1.layer, normed_, frames_, hidden_, clip_.vision.activation);
  launches_.Linear(layer.fc2, hidden_, frames_, branch_);
  TokenNormArgs end;
  end.rows = frames_, end.width = norm.width;
  end.x = end.sum = features, end.branch = branch_;
  end.normalize = false;
  launches_.Add(end);
}

TokenAttentionArgs ClipLaunches::Attention(int queries) const {
  const int width = clip_.vision.width, tokens = clip_.VisionTokens(), pitch = 3 * width;
  TokenAttentionArgs a;
  a.sequences = frames_;
  a.heads = clip_.vision.heads;
  a.head_size = clip_.vision.HeadSize();
  a.queries = queries, a.keys = tokens;
  const auto part = [&](int column) {
    return DeviceRows{static_cast<const uint8_t*>(qkv_) + column * element_, pitch,
                      int64_t{pitch} * tokens};
  };
  a.q = part(0), a.k = part(width), a.v = part(2 * width);
  a.out = heads_;
  return a;
}

}  // namespace mjp
