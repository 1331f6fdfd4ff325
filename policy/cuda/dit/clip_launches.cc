#include "policy/cuda/dit/clip_launches.h"

#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {
namespace {

constexpr int kPixelChannels = 8;  // of a prepared pixel, of which five are zeros

}  // namespace

ClipLaunches::ClipLaunches(const DeviceVision& weights, const ClipConfig& clip, Format format,
                           int frames, DeviceArena& arena)
    : clip_(clip),
      frames_(frames),
      rows_(frames * clip.VisionTokens()),
      element_(FormatBytes(format)),
      launches_(format) {
  const size_t width = clip.vision.width, size = rows_ * width;
  input_ = arena.TakeBytes(size_t{kPixelChannels} * frames * clip.image * clip.image * element_);
  patches_ = arena.TakeBytes(size * element_);
  y_ = arena.TakeBytes(size * element_);
  qkv_ = arena.TakeBytes(3 * size * element_);
  heads_ = arena.TakeBytes(size * element_);
  branch_ = arena.TakeBytes(size * element_);
  hidden_ = arena.TakeBytes(size_t{1} * rows_ * clip.vision.mlp * element_);
  x_ = arena.Take<float>(size);
  Embed(weights);
  for (size_t i = 0; i < weights.layers.size(); ++i) Layer(weights.layers[i], i == 0);
  Norm(nullptr, branch_, nullptr, nullptr);
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
  Norm(&weights.pre_norm, nullptr, x_, nullptr);
}

void ClipLaunches::Norm(const DeviceLayerNorm* norm, const void* branch, float* normed, void* y) {
  TokenNormArgs a;
  a.rows = rows_;
  a.width = clip_.vision.width;
  a.x = x_;
  a.branch = branch;
  a.normalize = norm != nullptr;
  a.epsilon = clip_.vision.epsilon;
  if (norm != nullptr) a.weight = norm->weight, a.bias = norm->bias;
  a.sum = normed == nullptr && branch != nullptr ? x_ : nullptr;
  a.normed = normed;
  a.y = y;
  launches_.Add(a);
}

void ClipLaunches::Layer(const DeviceClipLayer& layer, bool first) {
  const int width = clip_.vision.width, tokens = clip_.VisionTokens(), pitch = 3 * width;
  Norm(&layer.norm1, first ? nullptr : branch_, nullptr, y_);
  launches_.Linear(layer.qkv, y_, rows_, qkv_);
  TokenAttentionArgs a;
  a.sequences = frames_;
  a.heads = clip_.vision.heads;
  a.head_size = clip_.vision.HeadSize();
  a.queries = a.keys = tokens;
  const auto part = [&](int column) {
    return DeviceRows{static_cast<const uint8_t*>(qkv_) + column * element_, pitch,
                      int64_t{pitch} * tokens};
  };
  a.q = part(0), a.k = part(width), a.v = part(2 * width);
  a.out = heads_;
  launches_.Add(a);
  launches_.Linear(layer.out, heads_, rows_, branch_);
  Norm(&layer.norm2, branch_, nullptr, y_);
  launches_.Linear(layer.fc1, y_, rows_, hidden_, clip_.vision.activation);
  launches_.Linear(layer.fc2, hidden_, rows_, branch_);
}

void ClipLaunches::Run(float* features, cudaStream_t stream) const {
  launches_.Run(stream);
  const size_t row = clip_.vision.width * sizeof(float);
  CheckCuda(cudaMemcpy2DAsync(features, row, x_, row * clip_.VisionTokens(), row, frames_,
                              cudaMemcpyDeviceToDevice, stream),
            "copy of the class tokens");
}

}  // namespace mjp
