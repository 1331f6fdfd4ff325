#include "policy/act/packed_act.h"

#include <algorithm>
#include <utility>

#include "policy/act/folded_backbone.h"
#include "policy/act/sine_positions.h"

namespace mjp::cpu {
namespace {

AlignedBuffer Copy(const std::vector<float>& values) {
  AlignedBuffer copy(values.size());
  std::copy(values.begin(), values.end(), copy.data());
  return copy;
}

PackedLayerNorm Pack(const LayerNormWeights& norm) {
  return {Copy(norm.weight.data), Copy(norm.bias.data)};
}

PackedFeedForward Pack(const Linear& linear1, const Linear& linear2) {
  return {PackLinear(linear1), PackLinear(linear2)};
}

// Rows [begin, begin + count) of `linear`, in units of its width.
ConvLayer PackRows(const Linear& linear, int begin, int count, bool bias) {
  const int width = static_cast<int>(linear.weight.shape[1]);
  const float* weight = linear.weight.data.data() + int64_t{begin} * width * width;
  return MakeLinear(weight, bias ? linear.bias.data.data() + int64_t{begin} * width : nullptr,
                    count * width, width, width);
}

// What those rows of `linear` make of `positions` (rows, width), without the bias.
AlignedBuffer Turned(const Linear& linear, int begin, int count,
                     const std::vector<float>& positions) {
  const ConvLayer layer = PackRows(linear, begin, count, false);
  const int rows = static_cast<int>(positions.size()) / layer.in;
  AlignedBuffer turned(size_t{1} * rows * layer.out);
  LinearRows(layer, positions.data(), layer.in, rows, turned.data(), layer.out, 0, layer.out);
  return turned;
}

PackedSelfAttention PackSelf(const AttentionWeights& attention,
                             const std::vector<float>& positions) {
  return {PackLinear(attention.in), PackLinear(attention.out),
          Turned(attention.in, 0, 2, positions)};
}

PackedCrossAttention PackCross(const AttentionWeights& attention, const std::vector<float>& queries,
                               const std::vector<float>& keys) {
  return {PackRows(attention.in, 0, 1, true), PackRows(attention.in, 1, 2, true),
          PackLinear(attention.out), Turned(attention.in, 0, 1, queries),
          Turned(attention.in, 1, 1, keys)};
}

// The position embedding of every token; each camera's is that of its own map.
std::vector<float> TokenPositions(const ActModel& model) {
  std::vector<float> positions = model.weights.positions.data;
  for (const CameraFeature& camera : model.config.cameras) {
    const std::vector<float> cells =
        SinePositions(ActPolicyConfig::MapSize(camera.height),
                      ActPolicyConfig::MapSize(camera.width), model.config.width);
    positions.insert(positions.end(), cells.begin(), cells.end());
  }
  return positions;
}

}  // namespace

std::shared_ptr<PackedAct> PackAct(const ActModel& model) {
  const ActWeights& weights = model.weights;
  auto packed = std::make_shared<PackedAct>();
  if (!model.config.cameras.empty()) {
    packed->backbone =
        PackEncoder(ActBackbone(), FoldedBackbone(weights.backbone), Conv3x3::kWinograd);
    packed->image = PackConv2d(weights.image, 1);
  }
  if (model.config.state_dim > 0) packed->state = PackLinear(weights.state);
  if (model.config.environment_dim > 0) packed->environment = PackLinear(weights.environment);
  packed->latent = Copy(weights.latent.bias.data);
  packed->positions = TokenPositions(model);
  const std::vector<float>& queries = weights.queries.data;
  for (const ActEncoderLayer& layer : weights.encoder) {
    packed->encoder.push_back({PackSelf(layer.self, packed->positions),
                               Pack(layer.linear1, layer.linear2), Pack(layer.norm1),
                               Pack(layer.norm2)});
  }
  if (model.config.pre_norm) packed->encoder_norm = Pack(weights.encoder_norm);
  for (const ActDecoderLayer& layer : weights.decoder) {
    packed->decoder.push_back({PackSelf(layer.self, queries),
                               PackCross(layer.cross, queries, packed->positions),
                               Pack(layer.linear1, layer.linear2), Pack(layer.norm1),
                               Pack(layer.norm2), Pack(layer.norm3)});
  }
  packed->decoder_norm = Pack(weights.decoder_norm);
  packed->head = PackLinear(weights.head);
  return packed;
}

}  // namespace mjp::cpu
