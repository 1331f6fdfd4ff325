#include "policy/act/act_weights.h"

#include <utility>

namespace mjp {
namespace {

constexpr int kStageChannels[] = {64, 128, 256, 512};

std::vector<int> BlocksOf(int resnet) {
  return resnet == 34 ? std::vector{3, 4, 6, 3} : std::vector{2, 2, 2, 2};
}

// ---- outlines: every tensor's shape and no data
// --------------------------------------------------

Tensor Shaped(std::vector<int64_t> shape) { return {std::move(shape), {}}; }

Linear OutlineLinear(int64_t out, int64_t in) { return {Shaped({out, in}), Shaped({out})}; }

Conv OutlineConv(int64_t out, int64_t in, int64_t kernel) {
  return {Shaped({out, in, kernel, kernel}), {}};
}

BatchNorm OutlineBatchNorm(int64_t channels) {
  return {Shaped({channels}), Shaped({channels}), Shaped({channels}), Shaped({channels})};
}

LayerNormWeights OutlineNorm(int64_t width) { return {Shaped({width}), Shaped({width})}; }

AttentionWeights OutlineAttention(int64_t width) {
  return {OutlineLinear(3 * width, width), OutlineLinear(width, width)};
}

ResNetWeights OutlineResNet(int layers) {
  ResNetWeights net;
  net.stem = OutlineConv(64, 3, 7);
  net.stem_norm = OutlineBatchNorm(64);
  int in = 64;
  const std::vector<int> blocks = BlocksOf(layers);
  for (int stage = 0; stage < 4; ++stage) {
    const int out = kStageChannels[stage];
    for (int i = 0; i < blocks[stage]; ++i, in = out) {
      ResNetBlock block;
      block.stage = stage + 1;
      block.index = i;
      block.stride = i == 0 && stage > 0 ? 2 : 1;
      block.conv1 = OutlineConv(out, in, 3);
      block.conv2 = OutlineConv(out, out, 3);
      block.norm1 = block.norm2 = OutlineBatchNorm(out);
      if (in != out) {
        block.downsample = OutlineConv(out, in, 1);
        block.downsample_norm = OutlineBatchNorm(out);
      }
      net.blocks.push_back(std::move(block));
    }
  }
  return net;
}

ActEncoderLayer OutlineEncoderLayer(const ActPolicyConfig& config) {
  const int64_t d = config.width, f = config.feedforward;
  return {OutlineAttention(d), OutlineLinear(f, d), OutlineLinear(d, f), OutlineNorm(d),
          OutlineNorm(d)};
}

ActDecoderLayer OutlineDecoderLayer(const ActPolicyConfig& config) {
  const int64_t d = config.width, f = config.feedforward;
  return {OutlineAttention(d), OutlineAttention(d), OutlineLinear(f, d), OutlineLinear(d, f),
          OutlineNorm(d),      OutlineNorm(d),      OutlineNorm(d)};
}

// ---- names: one walk over the tree serves reading, writing and listing --------------------------

template <class Visit, class L>
void WalkLayer(const std::string& name, L& layer, const Visit& visit) {
  visit(name + ".weight", layer.weight, false);
  visit(name + ".bias", layer.bias, false);
}

template <class Visit, class N>
void WalkBatchNorm(const std::string& name, N& norm, const Visit& visit) {
  visit(name + ".weight", norm.weight, true);
  visit(name + ".bias", norm.bias, true);
  visit(name + ".running_mean", norm.mean, true);
  visit(name + ".running_var", norm.variance, true);
}

template <class Visit, class A>
void WalkAttention(const std::string& name, A& attention, const Visit& visit) {
  visit(name + ".in_proj_weight", attention.in.weight, false);
  visit(name + ".in_proj_bias", attention.in.bias, false);
  WalkLayer(name + ".out_proj", attention.out, visit);
}

template <class Visit, class Net>
void WalkResNet(const std::string& prefix, Net& net, const Visit& visit) {
  WalkLayer(prefix + "conv1", net.stem, visit);
  WalkBatchNorm(prefix + "bn1", net.stem_norm, visit);
  for (auto& block : net.blocks) {
    const std::string name =
        prefix + "layer" + std::to_string(block.stage) + "." + std::to_string(block.index);
    WalkLayer(name + ".conv1", block.conv1, visit);
    WalkBatchNorm(name + ".bn1", block.norm1, visit);
    WalkLayer(name + ".conv2", block.conv2, visit);
    WalkBatchNorm(name + ".bn2", block.norm2, visit);
    if (!block.downsample) continue;
    WalkLayer(name + ".downsample.0", *block.downsample, visit);
    WalkBatchNorm(name + ".downsample.1", block.downsample_norm, visit);
  }
}

template <class Visit, class Layer>
void WalkEncoderLayer(const std::string& name, Layer& layer, const Visit& visit) {
  WalkAttention(name + ".self_attn", layer.self, visit);
  WalkLayer(name + ".linear1", layer.linear1, visit);
  WalkLayer(name + ".linear2", layer.linear2, visit);
  WalkLayer(name + ".norm1", layer.norm1, visit);
  WalkLayer(name + ".norm2", layer.norm2, visit);
}

template <class Visit, class Layer>
void WalkDecoderLayer(const std::string& name, Layer& layer, const Visit& visit) {
  WalkAttention(name + ".self_attn", layer.self, visit);
  WalkAttention(name + ".multihead_attn", layer.cross, visit);
  WalkLayer(name + ".linear1", layer.linear1, visit);
  WalkLayer(name + ".linear2", layer.linear2, visit);
  WalkLayer(name + ".norm1", layer.norm1, visit);
  WalkLayer(name + ".norm2", layer.norm2, visit);
  WalkLayer(name + ".norm3", layer.norm3, visit);
}

template <class Visit, class Weights>
void WalkAct(Weights& weights, const Visit& all) {
  const auto visit = [&](const std::string& name, auto& tensor, bool buffer) {
    if (!tensor.shape.empty()) all(name, tensor, buffer);
  };
  const std::string model = "model.";
  WalkResNet(model + "backbone.", weights.backbone, visit);
  WalkLayer(model + "encoder_img_feat_input_proj", weights.image, visit);
  WalkLayer(model + "encoder_latent_input_proj", weights.latent, visit);
  WalkLayer(model + "encoder_robot_state_input_proj", weights.state, visit);
  WalkLayer(model + "encoder_env_state_input_proj", weights.environment, visit);
  visit(model + "encoder_1d_feature_pos_embed.weight", weights.positions, false);
  for (size_t i = 0; i < weights.encoder.size(); ++i)
    WalkEncoderLayer(model + "encoder.layers." + std::to_string(i), weights.encoder[i], visit);
  WalkLayer(model + "encoder.norm", weights.encoder_norm, visit);
  visit(model + "decoder_pos_embed.weight", weights.queries, false);
  for (size_t i = 0; i < weights.decoder.size(); ++i)
    WalkDecoderLayer(model + "decoder.layers." + std::to_string(i), weights.decoder[i], visit);
  WalkLayer(model + "decoder.norm", weights.decoder_norm, visit);
  WalkLayer(model + "action_head", weights.head, visit);
}

}  // namespace

ActWeights OutlineAct(const ActPolicyConfig& config) {
  const int64_t d = config.width;
  ActWeights weights;
  if (!config.cameras.empty()) {
    weights.backbone = OutlineResNet(config.resnet);
    weights.image = OutlineConv(d, kStageChannels[3], 1);
    weights.image.bias = Shaped({d});
  }
  weights.latent = OutlineLinear(d, config.latent_dim);
  if (config.state_dim > 0) weights.state = OutlineLinear(d, config.state_dim);
  if (config.environment_dim > 0) weights.environment = OutlineLinear(d, config.environment_dim);
  weights.positions = Shaped({config.VectorTokens(), d});
  weights.encoder.assign(config.encoder_layers, OutlineEncoderLayer(config));
  if (config.pre_norm) weights.encoder_norm = OutlineNorm(d);
  weights.queries = Shaped({config.horizon, d});
  weights.decoder.assign(config.decoder_layers, OutlineDecoderLayer(config));
  weights.decoder_norm = OutlineNorm(d);
  weights.head = OutlineLinear(config.action_dim, d);
  return weights;
}

void VisitAct(ActWeights& weights,
              const std::function<void(const std::string&, Tensor&, bool)>& visit) {
  WalkAct(weights, visit);
}

void VisitAct(const ActWeights& weights,
              const std::function<void(const std::string&, const Tensor&, bool)>& visit) {
  WalkAct(weights, visit);
}

void VisitActTraining(
    const ActPolicyConfig& config,
    const std::function<void(const std::string&, const std::vector<int64_t>&)>& visit) {
  if (!config.vae) return;
  const int64_t d = config.width, state = config.state_dim > 0 ? 1 : 0;
  const std::string vae = "model.vae_encoder";
  const auto leaf = [&](const std::string& name, const Tensor& tensor, bool) {
    visit(name, tensor.shape);
  };
  const ActEncoderLayer layer = OutlineEncoderLayer(config);
  for (int i = 0; i < config.vae_layers; ++i)
    WalkEncoderLayer(vae + ".layers." + std::to_string(i), layer, leaf);
  const LayerNormWeights norm = OutlineNorm(d);
  const Linear from_state = OutlineLinear(d, config.state_dim);
  const Linear from_action = OutlineLinear(d, config.action_dim);
  const Linear to_latent = OutlineLinear(2 * int64_t{config.latent_dim}, d);
  if (config.pre_norm) WalkLayer(vae + ".norm", norm, leaf);
  visit(vae + "_cls_embed.weight", {1, d});
  if (state > 0) WalkLayer(vae + "_robot_state_input_proj", from_state, leaf);
  WalkLayer(vae + "_action_input_proj", from_action, leaf);
  WalkLayer(vae + "_latent_output_proj", to_latent, leaf);
  visit(vae + "_pos_enc", {1, 1 + state + config.horizon, d});
}

}  // namespace mjp
