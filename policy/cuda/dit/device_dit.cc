#include "policy/cuda/dit/device_dit.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "kernels/cpu/prepare.h"
#include "kernels/cpu/transformer/rotary.h"

namespace mjp {
namespace {

void Append(std::vector<float>& to, const std::vector<float>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Linear Joined(const Linear& q, const Linear& k, const Linear& v) {
  Linear joined = q;
  for (const Linear* part : {&k, &v}) {
    Append(joined.weight.data, part->weight.data);
    Append(joined.bias.data, part->bias.data);
  }
  joined.weight.shape[0] *= 3;
  joined.bias.shape = {joined.weight.shape[0]};
  return joined;
}

DeviceVision LoadVision(LayerLoader& loader, const ClipVisionWeights& weights) {
  DeviceVision vision;
  const auto patch = static_cast<int>(weights.patch_embedding.shape[3]);
  vision.patches = loader.Conv2d({weights.patch_embedding, {}}, patch, 0);
  vision.class_token.bias = loader.Floats(weights.class_embedding.data);
  vision.positions = loader.Floats(weights.position_embedding.data);
  vision.pre_norm = LoadLayerNorm(loader, weights.pre_norm);
  for (const ClipLayer& layer : weights.layers) {
    DeviceClipLayer& out = vision.layers.emplace_back();
    out.norm1 = LoadLayerNorm(loader, layer.norm1);
    out.norm2 = LoadLayerNorm(loader, layer.norm2);
    out.qkv = LoadNormedLinear(loader, Joined(layer.q, layer.k, layer.v), &layer.norm1);
    out.out = loader.Dense(layer.out);
    out.fc1 = LoadNormedLinear(loader, layer.fc1, &layer.norm2);
    out.fc2 = loader.Dense(layer.fc2);
  }
  return vision;
}

// The columns of the conditioning vector of all blocks' modulations, without their biases.
Linear ConditionPart(const std::vector<DitBlock>& blocks, int64_t columns) {
  Linear out;
  for (const DitBlock& block : blocks) {
    const int64_t pitch = block.modulation.weight.shape[1];
    const std::vector<float>& all = block.modulation.weight.data;
    for (auto row = all.begin(); row != all.end(); row += pitch)
      out.weight.data.insert(out.weight.data.end(), row + (pitch - columns), row + pitch);
  }
  out.weight.shape = {static_cast<int64_t>(out.weight.data.size()) / columns, columns};
  return out;
}

}  // namespace

DeviceDit::DeviceDit(std::shared_ptr<const Checkpoint> checkpoint, Format format)
    : checkpoint_(std::move(checkpoint)) {
  Load(format);
  arena_.Seal();
  Load(format);
}

void DeviceDit::Load(Format format) {
  LayerLoader loader(arena_, format);
  LoadPictures(loader);
  LoadTrunk(loader);
}

void DeviceDit::LoadPictures(LayerLoader& loader) {
  const DitModel& model = DitOf(*checkpoint_);
  const DitConfig& config = model.config;
  picture_tables.clear(), resize_x.clear(), resize_y.clear();
  encoders.clear(), vision.clear();
  for (const FeatureStats& stats : checkpoint_->stats.cameras)
    picture_tables.push_back(loader.PictureTable(stats));
  const auto load_taps = [&](int from, int to) {
    const cpu::ResizeTaps taps = cpu::MakeResizeTaps(from, to);
    int* first = arena_.Take<int>(taps.first.size());
    arena_.UploadForGood(first, taps.first.data(), taps.first.size() * sizeof(int));
    return DeviceResizeTaps{taps.taps, first, loader.Floats(taps.weights)};
  };
  for (size_t i = 0; i < config.cameras.size() && config.resize_height > 0; ++i) {
    resize_x.push_back(load_taps(config.cameras[i].width, config.resize_width));
    resize_y.push_back(load_taps(config.cameras[i].height, config.resize_height));
  }
  if (config.cameras.empty()) return;
  const CameraFeature& camera = config.cameras.front();
  for (const EncoderWeights& weights : model.weights.encoders)
    encoders.push_back(
        LoadDeviceEncoder(loader, *config.encoder, weights, camera.height, camera.width));
  for (const ClipVisionWeights& weights : model.weights.vision)
    vision.push_back(LoadVision(loader, weights));
}

void DeviceDit::LoadTrunk(LayerLoader& loader) {
  const DitModel& model = DitOf(*checkpoint_);
  const DitConfig& config = model.config;
  const DitWeights& weights = model.weights;
  input = loader.Dense({weights.input.weight, {}});
  std::vector<float> bias;
  for (int p = 0; p < config.horizon; ++p) {
    Append(bias, weights.input.bias.data);
    for (int c = 0; c < config.hidden && !weights.position.data.empty(); ++c)
      bias[size_t{1} * p * config.hidden + c] +=
          weights.position.data[size_t{1} * p * config.hidden + c];
  }
  input_bias = loader.Floats(bias);
  output = loader.Dense(weights.output);
  condition = loader.Dense(ConditionPart(weights.blocks, config.CondDim()));
  if (config.rope) {
    const cpu::RotaryTable table =
        cpu::MakeRotaryTable(config.horizon, config.hidden / config.heads, config.rope_base);
    cosines = loader.Floats(table.cos);
    sines = loader.Floats(table.sin);
  }
  blocks.clear();
  for (const DitBlock& block : weights.blocks) {
    DeviceDitBlock& device = blocks.emplace_back();
    device.qkv = loader.Dense(block.qkv);
    device.out = loader.Dense(block.out);
    device.mlp1 = loader.Dense(block.mlp1);
    device.mlp2 = loader.Dense(block.mlp2);
  }
}

std::shared_ptr<const DeviceDit> DeviceDit::Get(const std::shared_ptr<const Checkpoint>& checkpoint,
                                                Format format) {
  static std::mutex mutex;
  static std::map<std::pair<const Checkpoint*, Format>, std::weak_ptr<const DeviceDit>> cache;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const DeviceDit>& entry = cache[{checkpoint.get(), format}];
  // a live entry holds its checkpoint, so the address cannot be another's
  std::shared_ptr<const DeviceDit> weights = entry.lock();
  if (!weights) entry = weights = std::make_shared<DeviceDit>(checkpoint, format);
  return weights;
}

}  // namespace mjp
