#include "policy/cuda/dit/clip_launches.h"

namespace mjp {
namespace {

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
      patch_pitch_(weights.patches.shape.in_c),
      element_(FormatBytes(format)),
      launches_(format),
      stream_(StreamOf(weights, clip, format, tokens_), format, launches_, arena) {
  const size_t width = clip.vision.width, size = tokens_ * width;
  input_ = arena.TakeBytes(frames * FrameBytes());
  qkv_ = arena.TakeBytes(3 * size * element_);
  heads_ = arena.TakeBytes(size * element_);
  branch_ = arena.TakeBytes(frames * width * element_);
  normed_ = arena.TakeBytes(frames * width * element_);
  hidden_ = arena.TakeBytes(size_t{1} * tokens_ * clip.vision.mlp * element_);
  Embed(weights);
  for (size_t i = 0; i + 1 < weights.layers.size(); ++i)
    Layer(weights.layers[i], weights.layers[i + 1].norm1);
  LastLayer(weights.layers.back(), features);
}

// The residual stream begins with a norm of its own.
void ClipLaunches::Embed(const DeviceVision& weights) {
  stream_.StartFrom(weights.first, clip_.VisionTokens());
  stream_.AddAndNormTwice(weights.patches, input_, weights.pre_norm, weights.layers.front().norm1);
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
  ConvArgs end;
  end.shape = layer.fc2.shape;
  end.shape.batch = frames_;
  end.x = hidden_, end.weight = layer.fc2.weight, end.bias = layer.fc2.bias;
  end.residual = end.y = features, end.y_fp32 = true;
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
