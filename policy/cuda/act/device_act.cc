#include "policy/cuda/act/device_act.h"

#include <algorithm>
#include <span>
#include <utility>

#include "policy/act/act_transformer.h"
#include "policy/act/folded_backbone.h"
#include "policy/cpu/shared_networks.h"
#include "policy/cuda/shared_weights.h"

namespace mjp {
namespace {

// Rows [begin, begin + count) of `linear`, in units of its width, without a bias.
Linear RowsOf(const Linear& linear, int begin, int count) {
  const int64_t width = linear.weight.shape[1], size = width * width;
  const auto from = linear.weight.data.begin() + begin * size;
  return {{{count * width, width}, {from, from + count * size}}, {}};
}

// The bias of those rows, for each of `rows` rows, with `added` (rows, added_width) on top of the
// first of them.
std::vector<float> RowBias(const Linear& linear, int begin, int count, int rows,
                           const cpu::AlignedBuffer& added) {
  const int64_t width = linear.weight.shape[1], out = count * width;
  const int64_t added_width = static_cast<int64_t>(added.size()) / rows;
  std::vector<float> table;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < out; ++c) {
      const float bias = linear.bias.data[begin * width + c];
      table.push_back(c < added_width ? bias + added.data()[r * added_width + c] : bias);
    }
  }
  return table;
}

DeviceNormedLinear LoadRows(LayerLoader& loader, const Linear& linear, int begin, int count,
                            int rows, const cpu::AlignedBuffer& added,
                            const LayerNormWeights* norm) {
  DeviceNormedLinear loaded = LoadNormedLinear(loader, RowsOf(linear, begin, count), norm);
  loaded.row_bias = loader.Floats(RowBias(linear, begin, count, rows, added));
  loaded.rows = rows;
  return loaded;
}

// weight (out, in) as (in, out)
std::vector<float> Turned(const Tensor& weight) {
  const int64_t out = weight.shape[0], in = weight.shape[1];
  std::vector<float> turned;
  for (int64_t i = 0; i < in; ++i)
    for (int64_t o = 0; o < out; ++o) turned.push_back(weight.data[o * in + i]);
  return turned;
}

VectorToken LoadVector(LayerLoader& loader, const Linear& linear) {
  return {static_cast<int>(linear.weight.shape[1]), loader.Floats(Turned(linear.weight)),
          loader.Floats(linear.bias.data), nullptr};
}

}  // namespace

DeviceAct::DeviceAct(std::shared_ptr<const Checkpoint> checkpoint, Format format)
    : checkpoint_(std::move(checkpoint)),
      packed_(cpu::SharedNetworks<cpu::PackedAct>(
          checkpoint_, [](const Checkpoint& from) { return cpu::PackAct(ActOf(from)); })) {
  Load(format);
  arena_.Seal();
  Load(format);
}

void DeviceAct::Load(Format format) {
  const ActModel& model = ActOf(*checkpoint_);
  const ActPolicyConfig& config = model.config;
  const ActWeights& weights = model.weights;
  LayerLoader loader(arena_, format);
  vectors.clear(), encoder.clear(), decoder.clear();
  if (!config.cameras.empty()) {
    const CameraFeature& camera = config.cameras.front();
    backbone = LoadDeviceEncoder(loader, ActBackbone(), FoldedBackbone(weights.backbone),
                                 camera.height, camera.width);
    image = loader.Conv2d(weights.image, 1, 0);
    picture_tables = loader.PictureTables(checkpoint_->stats.cameras);
  }
  vectors.push_back({0, nullptr, loader.Floats(weights.latent.bias.data), nullptr});
  if (config.state_dim > 0) vectors.push_back(LoadVector(loader, weights.state));
  if (config.environment_dim > 0) vectors.push_back(LoadVector(loader, weights.environment));
  for (size_t i = 0; i < weights.encoder.size(); ++i) LoadEncoderLayer(loader, i);
  if (config.pre_norm) encoder_norm = LoadLayerNorm(loader, weights.encoder_norm);
  for (size_t i = 0; i < weights.decoder.size(); ++i) LoadDecoderLayer(loader, i);
  decoder_norm = LoadLayerNorm(loader, weights.decoder_norm);
  head = loader.Dense(weights.head);
  LoadStart(loader);
}

void DeviceAct::LoadEncoderLayer(LayerLoader& loader, size_t i) {
  const ActModel& model = ActOf(*checkpoint_);
  const std::vector<ActEncoderLayer>& layers = model.weights.encoder;
  const ActEncoderLayer& from = layers[i];
  const bool before = model.config.pre_norm;
  const LayerNormWeights* const input_norm = before  ? &from.norm1
                                             : i > 0 ? &layers[i - 1].norm2
                                                     : nullptr;
  DeviceActEncoderLayer& layer = encoder.emplace_back();
  layer.self.in = LoadRows(loader, from.self.in, 0, 3, model.config.Tokens(),
                           packed_->encoder[i].self.positions, input_norm);
  layer.self.out = loader.Dense(from.self.out);
  layer.feed_forward = {LoadNormedLinear(loader, from.linear1, before ? &from.norm2 : &from.norm1),
                        loader.Dense(from.linear2)};
  layer.norm1 = LoadLayerNorm(loader, from.norm1);
  layer.norm2 = LoadLayerNorm(loader, from.norm2);
}

void DeviceAct::LoadDecoderLayer(LayerLoader& loader, size_t i) {
  const ActModel& model = ActOf(*checkpoint_);
  const ActPolicyConfig& config = model.config;
  const std::vector<ActDecoderLayer>& layers = model.weights.decoder;
  const ActDecoderLayer& from = layers[i];
  const cpu::PackedActDecoderLayer& packed = packed_->decoder[i];
  const bool before = config.pre_norm;
  DeviceActDecoderLayer& layer = decoder.emplace_back();
  if (i > 0) {
    layer.self.in = LoadRows(loader, from.self.in, 0, 3, config.horizon, packed.self.positions,
                             before ? &from.norm1 : &layers[i - 1].norm3);
    layer.self.out = loader.Dense(from.self.out);
    layer.cross.query = LoadRows(loader, from.cross.in, 0, 1, config.horizon,
                                 packed.cross.query_positions, before ? &from.norm2 : &from.norm1);
  }
  const LayerNormWeights* const of_encoder = before ? &model.weights.encoder_norm
                                             : model.weights.encoder.empty()
                                                 ? nullptr
                                                 : &model.weights.encoder.back().norm2;
  layer.cross.key_value = LoadRows(loader, from.cross.in, 1, 2, config.Tokens(),
                                   packed.cross.key_positions, of_encoder);
  layer.cross.out = loader.Dense(from.cross.out);
  layer.feed_forward = {LoadNormedLinear(loader, from.linear1, before ? &from.norm3 : &from.norm2),
                        loader.Dense(from.linear2)};
  layer.norm1 = LoadLayerNorm(loader, from.norm1);
  layer.norm2 = LoadLayerNorm(loader, from.norm2);
  layer.norm3 = LoadLayerNorm(loader, from.norm3);
}

void DeviceAct::LoadStart(LayerLoader& loader) {
  const ActPolicyConfig& config = ActOf(*checkpoint_).config;
  const size_t size = size_t{1} * config.horizon * config.width;
  if (arena_.measuring()) {
    start = loader.Floats(std::vector<float>(size));
    start_queries = loader.Stored(std::vector<float>(size));
    return;
  }
  cpu::ThreadPool pool(1);
  const cpu::ActTransformer transformer(packed_, config, 1, pool);
  start = loader.Floats({transformer.start(), transformer.start() + size});
  start_queries = loader.Stored({transformer.start_queries(), transformer.start_queries() + size});
}

std::shared_ptr<const DeviceAct> DeviceAct::Get(const std::shared_ptr<const Checkpoint>& checkpoint,
                                                Format format) {
  return SharedWeights<DeviceAct>(checkpoint, format);
}

}  // namespace mjp
