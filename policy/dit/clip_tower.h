#ifndef POLICY_DIT_CLIP_TOWER_H_
#define POLICY_DIT_CLIP_TOWER_H_

#include <span>
#include <string>
#include <vector>

#include "policy/cpu/tokens.h"
#include "policy/dit/dit_weights.h"
#include "policy/dit/tap.h"

// The transformers of CLIP on the CPU.

namespace mjp::cpu {

struct PackedNorm {
  AlignedBuffer weight, bias;
};
PackedNorm PackLayerNorm(const LayerNormWeights& norm);
// y = norm(x) of `rows` rows; y may be x.
void ApplyNorm(ThreadPool& pool, const PackedNorm& norm, float epsilon, const float* x,
               int64_t x_pitch, int rows, float* y);

struct PackedClipLayer {
  PackedNorm norm1, norm2;
  ConvLayer q, kv, out, fc1, fc2;
};

// Layers and what they work in. One Run at a time.
class ClipLayers {
 public:
  // Makes room for `sequences` sequences of `tokens` tokens. `layers` outlives it.
  ClipLayers(const std::vector<PackedClipLayer>& layers, const ClipTower& tower, int sequences,
             int tokens, ThreadPool& pool);

  // Runs all layers on x (sequences, tokens, width), in place. Of the last one only row
  // `wanted_row` of each sequence is right, unless `tap` sees it: then all rows are. With `causal`
  // a token sees itself and those before it, and the wanted row is the last.
  void Run(float* x, int sequences, int tokens, bool causal, int wanted_row,
           const std::string& name, const Tap& tap);

 private:
  // Rows first, first + step, ... of x: `count` of them, as many in each sequence.
  struct Rows {
    int first, step, count;
  };
  void Layer(const PackedClipLayer& layer, float* x, int sequences, int tokens, bool causal,
             const Rows& rows, const std::string& name, const Tap& tap);

  const std::vector<PackedClipLayer>& layers_;
  ClipTower tower_;
  ThreadPool& pool_;
  AlignedBuffer norm_, qkv_, heads_, out_, mlp_, scratch_;
};

// ---- pictures

struct PackedVision {
  ConvLayer patches;
  AlignedBuffer class_token, positions;  // (width), (tokens, width)
  PackedNorm pre_norm;
  std::vector<PackedClipLayer> layers;
};
PackedVision PackVision(const ClipVisionWeights& weights);

class VisionTower {
 public:
  VisionTower(const PackedVision& weights, const ClipConfig& clip, int pictures, ThreadPool& pool);

  // features (count, width) = the class tokens of the first `count` normalised pictures of x, each
  // clip.image pixels high and wide; before the norm that CLIP itself would apply.
  void Encode(const Features& x, int count, float* features, const Tap& tap = {});

 private:
  const PackedVision& weights_;
  ClipConfig clip_;
  ThreadPool& pool_;
  AlignedBuffer x_;
  ClipLayers layers_;
};

// ---- text

struct PackedText {
  const ClipTextWeights* embeddings = nullptr;  // looked up, not packed
  std::vector<PackedClipLayer> layers;
  PackedNorm final_norm;
};
PackedText PackText(const ClipTextWeights& weights);

// pooled (width) = the last token of `ids`, start to end, after the final norm. What would pad the
// text comes after and cannot change it.
void EncodeText(const PackedText& weights, const ClipConfig& clip, std::span<const int> ids,
                float* pooled, ThreadPool& pool, const Tap& tap = {});

}  // namespace mjp::cpu

#endif  // POLICY_DIT_CLIP_TOWER_H_
