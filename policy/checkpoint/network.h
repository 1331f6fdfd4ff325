#ifndef POLICY_CHECKPOINT_NETWORK_H_
#define POLICY_CHECKPOINT_NETWORK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/checkpoint/config.h"

// The weights of one policy, float32 in the layout of the original libraries, as a tree with the
// networks' own names. Backends (CPU, CUDA) and the trainer's export read this and nothing else.

namespace mjp {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> data;  // row-major
};

struct Linear {
  Tensor weight, bias;  // (out, in), (out)
};
struct Conv {
  Tensor weight,
      bias;  // 1-D: (out, in, k), transposed (in, out, k); 2-D: (out, in, k, k); bias may be empty
};
struct GroupNorm {
  int groups = 0;       // 0: no norm here (BatchNorm, folded into the convolution before it)
  Tensor weight, bias;  // (channels)
};

// conv - norm - ReLU - conv - norm (+ input, or its 1x1 strided conv and norm) - ReLU
struct BasicBlock2d {
  int stride = 1;
  Conv conv1, conv2;
  GroupNorm norm1, norm2;
  std::optional<Conv> downsample;
  GroupNorm downsample_norm;
};

struct EncoderWeights {
  Conv stem;
  GroupNorm stem_norm;
  std::vector<BasicBlock2d> blocks;
  Conv pool_conv;   // 1x1 before spatial softmax or flatten; empty for the average pool
  Tensor pos_grid;  // (cells, 2): x, y; spatial softmax only
  Linear out;       // empty for the average pool
};

// Mish(GN(conv)) - FiLM(Linear(Mish(cond))) - Mish(GN(conv)) + (input or its 1x1 conv)
struct ResidualBlock1d {
  Conv conv1, conv2;
  GroupNorm norm1, norm2;
  Linear film;  // (2 * out or out, step_embed_dim + cond_dim): scale first, then bias
  std::optional<Conv> residual;
};

struct UnetLevel {
  ResidualBlock1d block1, block2;
  std::optional<Conv> resample;  // down: k3 s2 p1; up: transposed k4 s2 p1
};

struct UnetWeights {
  Linear time1, time2;  // (4e, e), (e, 4e): sinusoid - Linear - Mish - Linear
  std::vector<UnetLevel> down, up;
  ResidualBlock1d mid1, mid2;
  Conv final_conv;
  GroupNorm final_norm;
  Conv out;  // 1x1 to action_dim
};

// Statistics of one feature, one value per element (or per channel of a picture).
struct FeatureStats {
  Normalization mode = Normalization::kIdentity;
  // kMeanStd: mean, std; kMinMax: min, max; kQuantiles: q01, q99; kQuantile10: q10, q90
  std::vector<float> first, second;
};

struct NormalizerStats {
  std::vector<FeatureStats> cameras;  // one per camera, 3 values each
  FeatureStats state, environment, action;
};

class NetworkModel;  // policy/checkpoint/network_model.h

// A loaded policy: everything a backend needs. Immutable once made; shared by all instances.
struct Checkpoint {
  PolicyConfig config;
  NormalizerStats stats;
  std::shared_ptr<const NetworkModel> network;  // of config.type
  int64_t parameter_count = 0;
  std::string directory;
  std::string sha256;  // of model.safetensors, hex; begins with "random-" for random weights
  // Its identity: name -> SHA-256 of every file that was read for it and changes an action.
  std::map<std::string, std::string> files;
};

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_NETWORK_H_
