#ifndef POLICY_ACT_PACKED_ACT_H_
#define POLICY_ACT_PACKED_ACT_H_

#include <memory>
#include <optional>
#include <vector>

#include "policy/act/act_model.h"
#include "policy/cpu/encoder.h"
#include "policy/cpu/layers.h"

// An ACT network packed for this processor, with what its weights alone decide already computed:
// W (x + p) = W x + W p for every position embedding p.

namespace mjp::cpu {

struct PackedLayerNorm {
  AlignedBuffer weight, bias;
};

struct PackedFeedForward {
  ConvLayer linear1, linear2;
};

struct PackedSelfAttention {
  ConvLayer in, out;        // in: q, k and v side by side
  AlignedBuffer positions;  // (rows, 2 width): what they add to q and k
};

struct PackedCrossAttention {
  ConvLayer query, key_value, out;
  AlignedBuffer query_positions;  // (horizon, width)
  AlignedBuffer key_positions;    // (tokens, width)
};

struct PackedActEncoderLayer {
  PackedSelfAttention self;
  PackedFeedForward feed_forward;
  PackedLayerNorm norm1, norm2;
};

struct PackedActDecoderLayer {
  PackedSelfAttention self;
  PackedCrossAttention cross;
  PackedFeedForward feed_forward;
  PackedLayerNorm norm1, norm2, norm3;
};

struct PackedAct {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const PackedEncoder> backbone;  // null without cameras
  std::optional<ConvLayer> image, state, environment;
  AlignedBuffer latent;          // (width): the first token
  std::vector<float> positions;  // (tokens, width)
  std::vector<PackedActEncoderLayer> encoder;
  std::vector<PackedActDecoderLayer> decoder;
  std::optional<PackedLayerNorm> encoder_norm;
  PackedLayerNorm decoder_norm;
  ConvLayer head;
};

std::shared_ptr<PackedAct> PackAct(const ActModel& model);

}  // namespace mjp::cpu

#endif  // POLICY_ACT_PACKED_ACT_H_
