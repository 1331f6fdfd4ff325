#ifndef POLICY_ACT_ACT_WEIGHTS_H_
#define POLICY_ACT_ACT_WEIGHTS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "policy/act/act_config.h"
#include "policy/checkpoint/layer_norm_weights.h"
#include "policy/checkpoint/network.h"

// The weights of an ACT policy, float32 in the layout of the original library. A tensor without a
// shape is one that the network does not have.

namespace mjp {

// Frozen: y = (x - mean) / sqrt(variance + 1e-5) * weight + bias.
struct BatchNorm {
  Tensor weight, bias, mean, variance;  // (channels)
};

// conv - norm - ReLU - conv - norm (+ input, or its 1x1 strided conv and norm) - ReLU
struct ResNetBlock {
  int stage = 1, index = 0;  // "layer<stage>.<index>"
  int stride = 1;
  Conv conv1, conv2;
  BatchNorm norm1, norm2;
  std::optional<Conv> downsample;
  BatchNorm downsample_norm;
};

struct ResNetWeights {
  Conv stem;
  BatchNorm stem_norm;
  std::vector<ResNetBlock> blocks;
};

struct AttentionWeights {
  Linear in;   // (3 width, width): rows of q, then k, then v
  Linear out;  // (width, width)
};

struct ActEncoderLayer {
  AttentionWeights self;
  Linear linear1, linear2;
  LayerNormWeights norm1, norm2;
};

struct ActDecoderLayer {
  AttentionWeights self, cross;
  Linear linear1, linear2;
  LayerNormWeights norm1, norm2, norm3;
};

struct ActWeights {
  ResNetWeights backbone;  // without cameras: none
  Conv image;              // 1x1 from the last feature map to tokens
  Linear latent;           // of a zero vector: its bias
  Linear state, environment;
  Tensor positions;  // (VectorTokens(), width)
  std::vector<ActEncoderLayer> encoder;
  LayerNormWeights encoder_norm;  // with pre_norm alone
  Tensor queries;                 // (horizon, width): position of each action
  std::vector<ActDecoderLayer> decoder;
  LayerNormWeights decoder_norm;
  Linear head;  // (action_dim, width)
};

// The network of `config` with the shape of every tensor and no data.
ActWeights OutlineAct(const ActPolicyConfig& config);

// Calls `visit` with every tensor under LeRobot's name; `buffer`: it is no parameter, but a frozen
// value of a norm.
void VisitAct(ActWeights& weights,
              const std::function<void(const std::string&, Tensor&, bool buffer)>& visit);
void VisitAct(const ActWeights& weights,
              const std::function<void(const std::string&, const Tensor&, bool buffer)>& visit);

// Calls `visit` with the name and shape of every tensor that training has and inference does not
// read: those of the VAE's encoder.
void VisitActTraining(
    const ActPolicyConfig& config,
    const std::function<void(const std::string&, const std::vector<int64_t>&)>& visit);

}  // namespace mjp

#endif  // POLICY_ACT_ACT_WEIGHTS_H_
