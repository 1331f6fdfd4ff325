#ifndef POLICY_DIT_DIT_WEIGHTS_H_
#define POLICY_DIT_DIT_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "policy/checkpoint/layer_norm_weights.h"
#include "policy/checkpoint/network.h"
#include "policy/checkpoint/network_model.h"
#include "policy/dit/dit_config.h"

// The weights of multi_task_dit and dit_compact, as a tree with the library's own layouts.

namespace mjp {

// x += out(attention(norm1(x))); x += fc2(act(fc1(norm2(x))))
struct ClipLayer {
  LayerNormWeights norm1, norm2;
  Linear q, k, v, out, fc1, fc2;
};

struct ClipVisionWeights {
  Tensor class_embedding, patch_embedding, position_embedding;  // (w), (w, 3, p, p), (tokens, w)
  LayerNormWeights pre_norm;
  std::vector<ClipLayer> layers;
};

struct ClipTextWeights {
  Tensor token_embedding, position_embedding;  // (vocabulary, w), (positions, w)
  std::vector<ClipLayer> layers;
  LayerNormWeights final_norm;
};

struct DitBlock {
  Linear qkv, out, mlp1, mlp2;  // (3 D, D): q, k, v; (D, D); (4 D, D); (D, 4 D)
  Linear modulation;            // (6 D, time + cond): shift, scale, gate of attention, then of MLP
};

struct DitWeights {
  std::vector<EncoderWeights> encoders;   // of dit_compact, in place of both towers
  std::vector<ClipVisionWeights> vision;  // one, or one per camera
  ClipTextWeights text;
  Linear text_projection;  // (D, text width)
  Linear time1, time2;     // (2 E, E), (E, 2 E): sinusoid - Linear - GELU - Linear - GELU
  Linear input, output;    // (D, action), (action, D)
  Tensor position;         // (1, horizon, D); empty without
  std::vector<DitBlock> blocks;
};

// How a file spells what two versions of its library spell differently.
struct DitNames {
  std::string vision = "vision_model.", text = "text_model.";  // or ""
};

// The spelling in `source`.
DitNames DitNamesIn(const TensorSource& source, const DitConfig& config);

// `config.clip` with the sizes that the shapes of `source` say; as it is where it has no shapes.
// Throws Error for shapes that no such network can have.
ClipConfig ClipSizes(const TensorSource& source, const DitNames& names, const DitConfig& config);

// Every tensor with its shape and no data.
DitWeights OutlineDit(const DitConfig& config);

// Calls `visit` with every tensor in the library's order; post_layernorm is not read.
void ListDit(const DitNames& names, const DitConfig& config, const NetworkModel::VisitShape& visit);
// Fills `weights`, an outline. Returns the number of parameters.
int64_t TakeDit(const DitNames& names, const DitConfig& config, TensorSource& source,
                DitWeights& weights);
void VisitDit(const DitNames& names, const DitConfig& config, const DitWeights& weights,
              const NetworkModel::VisitTensor& visit);

}  // namespace mjp

#endif  // POLICY_DIT_DIT_WEIGHTS_H_
