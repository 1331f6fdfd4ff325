#include "policy/cuda/dit/clip_launches.h"

namespace mjp {
namespace {

constexpr int kPixelChannels = 8;  // of a prepared pixel, of which five are zeros

}  // namespace

ClipLaunches::ClipLaunches(const DeviceVision& weights, const ClipConfig& clip, Format format,
                           int frames, float* features, DeviceArena& arena)
    : clip_(clip),
      frames_(frames),
      tokens_(frames * clip.VisionTokens()),
      element_(FormatBytes(format)),
      launches_(format) {
  const size_t width = clip.vision.width, size = tokens_ * width;
  input_ = arena.TakeBytes(size_t{kPixelChannels} * frames * clip.image * clip.image * element_);
  patches_ = arena.TakeBytes(size * element_);
  y_ = arena.TakeBytes(size * element_);
  qkv_ = arena.TakeBytes(3 * size * element_);
  heads_ = arena.TakeBytes(size * element_);
  branch_ = arena.TakeBytes(size * element_);
  hidden_ = arena.TakeBytes(size_t{1} * tokens_ * clip.vision.mlp * element_);
  x_ = arena.Take<float>(size);
  Embed(weights);
  for (const DeviceClipLayer& layer : weights.layers) {
    const bool first = &layer == &weights.layers.front(), last = &layer == &weights.layers.back();
    Layer(layer, first, last ? features : nullptr);
  }
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
  tokens.x = x_;
  launches_.Add(tokens);
  TokenNormArgs norm = Norm(&weights.pre_norm, tokens_, nullptr);
  norm.normed = x_;
  launches_.Add(norm);
}

TokenNormArgs ClipLaunches::Norm(const DeviceLayerNorm* norm, int rows, const void* branch) const {
  TokenNormArgs a;
  a.rows = rows;
  a.width = clip_.vision.width;
  a.x = x_;
  a.branch = branch;
  a.normalize = norm != nullptr;
  a.epsilon = clip_.vision.epsilon;
  if (norm != nullptr) a.weight = norm->weight, a.bias = norm->bias;
  return a;
}

void ClipLaunches::Layer(const DeviceClipLayer& layer, bool first, float* features) {
  const bool last = features != nullptr;  // then the class tokens alone are made
  TokenNormArgs norm1 = Norm(&layer.norm1, tokens_, first ? nullptr : branch_);
  norm1.sum = first ? nullptr : x_, norm1.y = y_;
  launches_.Add(norm1);
  launches_.Linear(layer.qkv, y_, tokens_, qkv_);
  const int rows = last ? frames_ : tokens_;  // that anybody reads
  launches_.Add(Attention(rows / frames_));
  launches_.Linear(layer.out, heads_, rows, branch_);
  TokenNormArgs norm2 = Norm(&layer.norm2, rows, branch_);
  norm2.sum = x_, norm2.y = y_;
  if (last) norm2.sum = features, norm2.x_pitch = int64_t{1} * clip_.VisionTokens() * norm2.width;
  launches_.Add(norm2);
  launches_.Linear(layer.fc1, y_, rows, hidden_, clip_.vision.activation);
  launches_.Linear(layer.fc2, hidden_, rows, branch_);
  if (!last) return;
  TokenNormArgs end = Norm(nullptr, rows, branch_);
  end.x = end.sum = features;
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
