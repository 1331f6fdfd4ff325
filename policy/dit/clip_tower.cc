#include "policy/dit/clip_tower.h"

#include <algorithm>

#include "kernels/cpu/transformer/patch_embedding.h"

namespace mjp::cpu {
namespace {

AlignedBuffer Copy(const Tensor& tensor) {
  AlignedBuffer copy(tensor.data.size());
  std::copy(tensor.data.begin(), tensor.data.end(), copy.data());
  return copy;
}

// Several linear layers of the same input as one: their outputs after one another.
ConvLayer PackJoined(std::initializer_list<const Linear*> parts) {
  Linear joined;
  for (const Linear* part : parts) {
    std::vector<float>&weight = joined.weight.data, &bias = joined.bias.data;
    weight.insert(weight.end(), part->weight.data.begin(), part->weight.data.end());
    bias.insert(bias.end(), part->bias.data.begin(), part->bias.data.end());
  }
  const auto out = static_cast<int64_t>(joined.bias.data.size());
  joined.weight.shape = {out, (*parts.begin())->weight.shape[1]};
  joined.bias.shape = {out};
  return PackLinear(joined);
}

std::vector<PackedClipLayer> PackLayers(const std::vector<ClipLayer>& layers) {
  std::vector<PackedClipLayer> packed;
  for (const ClipLayer& layer : layers) {
    packed.push_back({PackLayerNorm(layer.norm1), PackLayerNorm(layer.norm2), PackLinear(layer.q),
                      PackJoined({&layer.k, &layer.v}), PackLinear(layer.out),
                      PackLinear(layer.fc1), PackLinear(layer.fc2)});
  }
  return packed;
}

}  // namespace

PackedNorm PackLayerNorm(const LayerNormWeights& norm) {
  return {Copy(norm.weight), Copy(norm.bias)};
}

void ApplyNorm(ThreadPool& pool, const PackedNorm& norm, float epsilon, const float* x,
               int64_t x_pitch, int rows, float* y) {
  const auto width = static_cast<int>(norm.weight.size());
  LayerNormArgs args{.x = x, .x_pitch = x_pitch, .y = y, .y_pitch = width, .width = width};
  args.epsilon = epsilon;
  args.weight = norm.weight.data();
  args.bias = norm.bias.data();
  NormTokens(pool, args, rows);
}

ClipLayers::ClipLayers(const std::vector<PackedClipLayer>& layers, const ClipTower& tower,
                       int sequences, int tokens, ThreadPool& pool)
    : layers_(layers), tower_(tower), pool_(pool) {
  const size_t rows = size_t{1} * sequences * tokens, width = tower.width;
  norm_ = AlignedBuffer(rows * width);
  qkv_ = AlignedBuffer(rows * 3 * width);
  heads_ = AlignedBuffer(rows * width);
  out_ = AlignedBuffer(rows * width);
  mlp_ = AlignedBuffer(rows * tower.mlp);
  AttentionArgs args{.heads = tower.heads, .head_size = tower.HeadSize()};
  args.queries = args.keys = tokens;
  scratch_ = MakeAttentionScratch(pool, args);
}

void ClipLayers::Run(float* x, int sequences, int tokens, bool causal, int wanted_row,
                     const std::string& name, const Tap& tap) {
  const int width = tower_.width, rows = sequences * tokens;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string layer = name + "/layer" + std::to_string(i);
    const bool last = i + 1 == layers_.size() && !tap;
    const Rows some = last ? Rows{wanted_row, tokens, sequences} : Rows{0, 1, rows};
    Layer(layers_[i], x, sequences, tokens, causal && !last, some, layer, tap);
    if (tap) tap(layer, x, rows, width);
  }
}

// the rows that are wanted query all keys; the others are left as they were
void ClipLayers::Layer(const PackedClipLayer& layer, float* x, int sequences, int tokens,
                       bool causal, const Rows& rows, const std::string& name, const Tap& tap) {
  constexpr TokenActivation kNone = TokenActivation::kNone;
  const int width = tower_.width, mlp = tower_.mlp, count = rows.count;
  const int64_t step = int64_t{rows.step} * width, first = int64_t{rows.first} * width;
  ApplyNorm(pool_, layer.norm1, tower_.epsilon, x, width, sequences * tokens, norm_.data());
  LinearTokens(pool_, layer.kv, norm_.data(), width, sequences * tokens, kNone, qkv_.data() + width,
               3 * width);
  LinearTokens(pool_, layer.q, norm_.data() + first, step, count, kNone, qkv_.data() + 3 * first,
               3 * step);
  const int queries = count / sequences;
  const int64_t sequence = int64_t{tokens} * 3 * width;
  AttentionArgs args{.sequences = sequences, .heads = tower_.heads, .head_size = tower_.HeadSize()};
  args.queries = queries;
  args.keys = tokens;
  args.q = {qkv_.data() + 3 * first, 3 * step, sequence};
  args.k = {qkv_.data() + width, 3 * width, sequence};
  args.v = {qkv_.data() + 2 * width, 3 * width, sequence};
  args.out = heads_.data();
  args.out_pitch = width;
  args.out_batch = int64_t{queries} * width;
  args.causal = causal;
  Attend(pool_, args, scratch_);
  LinearTokens(pool_, layer.out, heads_.data(), width, count, kNone, out_.data(), width);
  if (tap) tap(name + "/self_attn", out_.data(), count, width);
  const ResidualArgs add{
      .y = x + first, .y_pitch = step, .x = out_.data(), .x_pitch = width, .width = width};
  AddTokens(pool_, add, count);
  ApplyNorm(pool_, layer.norm2, tower_.epsilon, x + first, step, count, norm_.data());
  LinearTokens(pool_, layer.fc1, norm_.data(), width, count, tower_.activation, mlp_.data(), mlp);
  LinearTokens(pool_, layer.fc2, mlp_.data(), mlp, count, kNone, out_.data(), width);
  AddTokens(pool_, add, count);
}

PackedVision PackVision(const ClipVisionWeights& weights) {
  const Tensor& patches = weights.patch_embedding;
  return {MakePatchEmbedding(patches.data.data(), nullptr, static_cast<int>(patches.shape[0]), 3,
                             static_cast<int>(patches.shape[3])),
          Copy(weights.class_embedding), Copy(weights.position_embedding),
          PackLayerNorm(weights.pre_norm), PackLayers(weights.layers)};
}

VisionTower::VisionTower(const PackedVision& weights, const ClipConfig& clip, int pictures,
                         ThreadPool& pool)
    : weights_(weights),
      clip_(clip),
      pool_(pool),
      x_(size_t{1} * pictures * clip.VisionTokens() * clip.vision.width),
      layers_(weights.layers, clip.vision, pictures, clip.VisionTokens(), pool) {}

void VisionTower::Encode(const Features& x, int count, float* features, const Tap& tap) {
  const int width = clip_.vision.width, tokens = clip_.VisionTokens();
  const int64_t picture = int64_t{tokens} * width;
  for (int n = 0; n < count; ++n) {
    float* first = x_.data() + n * picture;
    std::copy_n(weights_.class_token.data(), width, first);
    pool_.ForBlocks(1, width, PanelChannels(), [&](const Block& b) {
      EmbedPatches(weights_.patches, x, n, first + width, width, b.channel_begin, b.channel_end);
    });
    AddTokens(pool_,
              {.y = first,
               .y_pitch = width,
               .x = weights_.positions.data(),
               .x_pitch = width,
               .width = width},
              tokens);
  }
  if (tap) tap("vision/embeddings", x_.data(), int64_t{count} * tokens, width);
  ApplyNorm(pool_, weights_.pre_norm, clip_.vision.epsilon, x_.data(), width, count * tokens,
            x_.data());
  if (tap) tap("vision/pre_layrnorm", x_.data(), int64_t{count} * tokens, width);
  layers_.Run(x_.data(), count, tokens, false, 0, "vision", tap);
  for (int n = 0; n < count; ++n) {
    std::copy_n(x_.data() + n * picture, width, features + int64_t{n} * width);
  }
  if (tap) tap("vision/cls", features, count, width);
}

PackedText PackText(const ClipTextWeights& weights) {
  return {&weights, PackLayers(weights.layers), PackLayerNorm(weights.final_norm)};
}

void EncodeText(const PackedText& weights, const ClipConfig& clip, std::span<const int> ids,
                float* pooled, ThreadPool& pool, const Tap& tap) {
  const int width = clip.text.width, tokens = static_cast<int>(ids.size()), last = tokens - 1;
  AlignedBuffer x(size_t{1} * tokens * width);
  const float* words = weights.embeddings->token_embedding.data.data();
  const float* positions = weights.embeddings->position_embedding.data.data();
  for (int t = 0; t < tokens; ++t) {
    for (int c = 0; c < width; ++c) {
      x[size_t{1} * t * width + c] =
          words[int64_t{ids[t]} * width + c] + positions[int64_t{t} * width + c];
    }
  }
  if (tap) tap("text/embeddings", x.data(), tokens, width);
  ClipLayers layers(weights.layers, clip.text, 1, tokens, pool);
  layers.Run(x.data(), 1, tokens, true, last, "text", tap);
  if (tap) {
    ApplyNorm(pool, weights.final_norm, clip.text.epsilon, x.data(), width, tokens, x.data());
    tap("text/final", x.data(), tokens, width);
    std::copy_n(x.data() + int64_t{last} * width, width, pooled);
  } else {
    ApplyNorm(pool, weights.final_norm, clip.text.epsilon, x.data() + int64_t{last} * width, width,
              1, pooled);
  }
  if (tap) tap("text/pooled", pooled, 1, width);
}

}  // namespace mjp::cpu
