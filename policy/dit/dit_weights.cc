#include "policy/dit/dit_weights.h"

#include <cmath>

#include "base/error.h"
#include "policy/unet/network_builder.h"

namespace mjp {
namespace {

constexpr char kVisionEncoder[] = "observation_encoder.vision_encoder";
constexpr char kTextEncoder[] = "observation_encoder.text_encoder.";
constexpr char kRgbEncoder[] = "observation_encoder.rgb_encoder.";
constexpr char kPredictor[] = "noise_predictor.";
constexpr int kOpenAiHeadSize = 64;  // of all CLIP models by OpenAI
constexpr int64_t kMostWidth = 8192, kMostLayers = 64, kMostTokens = 4096, kMostWords = 1 << 20;

std::string VisionPrefix(const DitNames& names, const DitConfig& config, size_t index) {
  return kVisionEncoder +
         (config.separate_encoders ? "s." + std::to_string(index) : std::string()) + ".model." +
         names.vision;
}

std::string TextPrefix(const DitNames& names) {
  return std::string(kTextEncoder) + "text_encoder." + names.text;
}

size_t Towers(const DitConfig& config) {
  return config.cameras.empty() || config.encoder ? 0
         : config.separate_encoders               ? config.cameras.size()
                                                  : 1;
}

// ---- shapes

Linear OutlineLinear(int64_t out, int64_t in) { return {{{out, in}, {}}, {{out}, {}}}; }
LayerNormWeights OutlineNorm(int64_t width) { return {{{width}, {}}, {{width}, {}}}; }

std::vector<ClipLayer> OutlineLayers(const ClipTower& tower) {
  const int64_t width = tower.width, mlp = tower.mlp;
  ClipLayer layer{OutlineNorm(width), OutlineNorm(width), {}, {}, {}, {}, {}, {}};
  layer.q = layer.k = layer.v = layer.out = OutlineLinear(width, width);
  layer.fc1 = OutlineLinear(mlp, width);
  layer.fc2 = OutlineLinear(width, mlp);
  return std::vector<ClipLayer>(tower.layers, layer);
}

ClipVisionWeights OutlineVision(const ClipConfig& clip) {
  const int64_t width = clip.vision.width;
  return {{{width}, {}},
          {{width, 3, clip.patch, clip.patch}, {}},
          {{clip.VisionTokens(), width}, {}},
          OutlineNorm(width),
          OutlineLayers(clip.vision)};
}

// ---- names

template <class L, class Visit>
void WalkLayer(const std::string& name, L& layer, const Visit& visit) {
  visit(name + ".weight", layer.weight);
  visit(name + ".bias", layer.bias);
}

template <class Layers, class Visit>
void WalkLayers(const std::string& prefix, Layers& layers, const Visit& visit) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string name = prefix + "encoder.layers." + std::to_string(i) + ".";
    auto& layer = layers[i];
    WalkLayer(name + "self_attn.k_proj", layer.k, visit);
    WalkLayer(name + "self_attn.v_proj", layer.v, visit);
    WalkLayer(name + "self_attn.q_proj", layer.q, visit);
    WalkLayer(name + "self_attn.out_proj", layer.out, visit);
    WalkLayer(name + "layer_norm1", layer.norm1, visit);
    WalkLayer(name + "mlp.fc1", layer.fc1, visit);
    WalkLayer(name + "mlp.fc2", layer.fc2, visit);
    WalkLayer(name + "layer_norm2", layer.norm2, visit);
  }
}

template <class Weights, class Visit>
void WalkTowers(const DitNames& names, const DitConfig& config, Weights& weights,
                const Visit& visit) {
  for (size_t i = 0; i < weights.vision.size(); ++i) {
    const std::string prefix = VisionPrefix(names, config, i);
    auto& vision = weights.vision[i];
    visit(prefix + "embeddings.class_embedding", vision.class_embedding);
    visit(prefix + "embeddings.patch_embedding.weight", vision.patch_embedding);
    visit(prefix + "embeddings.position_embedding.weight", vision.position_embedding);
    WalkLayer(prefix + "pre_layrnorm", vision.pre_norm, visit);  // the library spells it so
    WalkLayers(prefix, vision.layers, visit);
  }
  const std::string prefix = TextPrefix(names);
  visit(prefix + "embeddings.token_embedding.weight", weights.text.token_embedding);
  visit(prefix + "embeddings.position_embedding.weight", weights.text.position_embedding);
  WalkLayers(prefix, weights.text.layers, visit);
  WalkLayer(prefix + "final_layer_norm", weights.text.final_norm, visit);
  WalkLayer(std::string(kTextEncoder) + "projection", weights.text_projection, visit);
}

template <class Weights, class Visit>
void WalkDit(const DitNames& names, const DitConfig& config, Weights& weights, const Visit& visit) {
  for (auto& encoder : weights.encoders) VisitEncoder(kRgbEncoder, *config.encoder, encoder, visit);
  if (!config.encoder) WalkTowers(names, config, weights, visit);
  const std::string prefix = kPredictor;
  if (config.position_embedding) visit(prefix + "pos_embedding", weights.position);
  WalkLayer(prefix + "time_mlp.1", weights.time1, visit);
  WalkLayer(prefix + "time_mlp.3", weights.time2, visit);
  WalkLayer(prefix + "input_proj", weights.input, visit);
  for (size_t i = 0; i < weights.blocks.size(); ++i) {
    const std::string name = prefix + "transformer_blocks." + std::to_string(i) + ".";
    auto& block = weights.blocks[i];
    if (config.rope) {
      WalkLayer(name + "attn.qkv_proj", block.qkv, visit);
      WalkLayer(name + "attn.out_proj", block.out, visit);
    } else {
      visit(name + "multihead_attn.in_proj_weight", block.qkv.weight);
      visit(name + "multihead_attn.in_proj_bias", block.qkv.bias);
      WalkLayer(name + "multihead_attn.out_proj", block.out, visit);
    }
    WalkLayer(name + "mlp.0", block.mlp1, visit);
    WalkLayer(name + "mlp.2", block.mlp2, visit);
    WalkLayer(name + "adaLN_modulation.1", block.modulation, visit);
  }
  WalkLayer(prefix + "output_proj", weights.output, visit);
}

// What the towers have and inference does not read: the class token is taken before it.
template <class Visit>
void WalkUnused(const DitNames& names, const DitConfig& config, const Visit& visit) {
  for (size_t i = 0; i < Towers(config); ++i) {
    for (const char* part : {"post_layernorm.weight", "post_layernorm.bias"}) {
      visit(VisionPrefix(names, config, i) + part, std::vector<int64_t>{config.clip.vision.width});
    }
  }
}

// ---- sizes

// The extents of a tensor of a file; 0s where it is not there or has another number of them.
std::vector<int64_t> Extents(const TensorSource& source, const std::string& name, size_t rank) {
  std::vector<int64_t> shape = source.ShapeOf(name);
  if (shape.size() != rank) shape.assign(rank, 0);
  return shape;
}

int Checked(const std::string& name, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return static_cast<int>(value);
  throw BadInput("model.safetensors: tensor \"" + name + "\" is missing, or has a size of " +
                 std::to_string(value) + ", allowed are 1 to " + std::to_string(most) +
                 ": the file is not of a multi_task_dit policy with CLIP towers");
}

ClipTower TowerSizes(const TensorSource& source, const std::string& prefix,
                     const std::string& embedding, ClipTower tower) {
  const std::string fc1 = prefix + "encoder.layers.0.mlp.fc1.weight";
  const int heads = tower.heads;
  tower.width = Checked(embedding, Extents(source, embedding, 2)[1], kMostWidth);
  tower.mlp = Checked(fc1, Extents(source, fc1, 2)[0], 4 * kMostWidth);
  tower.layers = 0;
  while (tower.layers <= kMostLayers &&
         source.HasPrefix(prefix + "encoder.layers." + std::to_string(tower.layers) + ".")) {
    ++tower.layers;
  }
  Checked(prefix + "encoder.layers", tower.layers, kMostLayers);
  if (heads == 0) tower.heads = tower.width / kOpenAiHeadSize;
  if (tower.heads < 1 || tower.width % tower.heads != 0) {
    throw BadInput("model.safetensors: " + prefix + " has width " + std::to_string(tower.width) +
                   ", which is not a multiple of its " + std::to_string(tower.heads) +
                   " heads: the config.json of the CLIP model is not that of these weights");
  }
  return tower;
}

}  // namespace

DitNames DitNamesIn(const TensorSource& source, const DitConfig& config) {
  DitNames names;
  if (!source.HasPrefix(VisionPrefix(names, config, 0))) names.vision.clear();
  if (!source.HasPrefix(TextPrefix(names))) names.text.clear();
  return names;
}

ClipConfig ClipSizes(const TensorSource& source, const DitNames& names, const DitConfig& config) {
  ClipConfig clip = config.clip;
  const std::string text = TextPrefix(names), tokens = text + "embeddings.token_embedding.weight";
  if (source.ShapeOf(tokens).empty()) return clip;
  const std::string positions = text + "embeddings.position_embedding.weight";
  clip.text = TowerSizes(source, text, tokens, clip.text);
  clip.vocabulary = Checked(tokens, Extents(source, tokens, 2)[0], kMostWords);
  clip.positions = Checked(positions, Extents(source, positions, 2)[0], kMostTokens);
  if (config.cameras.empty()) return clip;
  const std::string vision = VisionPrefix(names, config, 0);
  const std::string cells = vision + "embeddings.position_embedding.weight";
  const std::string patches = vision + "embeddings.patch_embedding.weight";
  clip.vision = TowerSizes(source, vision, cells, clip.vision);
  clip.patch = Checked(patches, Extents(source, patches, 4)[3], kMostWidth);
  const int count = Checked(cells, Extents(source, cells, 2)[0], kMostTokens) - 1;
  const auto side = static_cast<int>(std::lround(std::sqrt(count)));
  if (side < 1 || side * side != count) {
    throw BadInput("model.safetensors: tensor \"" + cells + "\" has " + std::to_string(count + 1) +
                   " rows, which are not one and those of a square of patches");
  }
  clip.image = side * clip.patch;
  return clip;
}

namespace {

void OutlineTowers(const DitConfig& config, DitWeights& weights) {
  weights.vision.assign(Towers(config), OutlineVision(config.clip));
  const int64_t text = config.clip.text.width;
  weights.text = {{{config.clip.vocabulary, text}, {}},
                  {{config.clip.positions, text}, {}},
                  OutlineLayers(config.clip.text),
                  OutlineNorm(text)};
  weights.text_projection = OutlineLinear(config.hidden, text);
}

}  // namespace

DitWeights OutlineDit(const DitConfig& config) {
  const int64_t width = config.hidden, embed = config.time_embed;
  DitWeights weights;
  if (config.encoder) {
    weights.encoders = OutlineEncoders(*config.encoder, config.cameras);
  } else {
    OutlineTowers(config, weights);
  }
  weights.time1 = OutlineLinear(2 * embed, embed);
  weights.time2 = OutlineLinear(embed, 2 * embed);
  weights.input = OutlineLinear(width, config.action_dim);
  weights.output = OutlineLinear(config.action_dim, width);
  if (config.position_embedding) weights.position.shape = {1, config.horizon, width};
  DitBlock block{OutlineLinear(3 * width, width), OutlineLinear(width, width),
                 OutlineLinear(4 * width, width), OutlineLinear(width, 4 * width),
                 OutlineLinear(6 * width, embed + config.CondDim())};
  weights.blocks.assign(config.layers, block);
  return weights;
}

void ListDit(const DitNames& names, const DitConfig& config,
             const NetworkModel::VisitShape& visit) {
  const DitWeights weights = OutlineDit(config);
  WalkDit(names, config, weights, [&](const std::string& name, const Tensor& tensor) {
    visit(name, tensor.shape, TensorRole::kNeeded);
  });
  WalkUnused(names, config, [&](const std::string& name, const std::vector<int64_t>& shape) {
    visit(name, shape, TensorRole::kTrainingOnly);
  });
}

int64_t TakeDit(const DitNames& names, const DitConfig& config, TensorSource& source,
                DitWeights& weights) {
  int64_t count = 0;
  WalkDit(names, config, weights, [&](const std::string& name, Tensor& tensor) {
    tensor = source.Take(name, tensor.shape);
    count += static_cast<int64_t>(tensor.data.size());
  });
  WalkUnused(names, config,
             [&](const std::string& name, const std::vector<int64_t>&) { source.Discard(name); });
  return count;
}

void VisitDit(const DitNames& names, const DitConfig& config, const DitWeights& weights,
              const NetworkModel::VisitTensor& visit) {
  WalkDit(names, config, weights, visit);
}

}  // namespace mjp
