#include "policy/cuda/dit/device_dit.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/cpu/prepare.h"
#include "kernels/cpu/transformer/rotary.h"
#include "policy/cuda/shared_weights.h"

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

// The convolution of patches (width, 3, patch, patch) as a layer (width, patch * patch * 3).
Linear PatchLayer(const Tensor& convolution) {
  const int64_t width = convolution.shape[0], pixels = convolution.shape[2] * convolution.shape[3];
  Linear layer;
  layer.weight.shape = {width, 3 * pixels};
  for (int64_t i = 0; i < width * pixels; ++i) {
    for (int64_t c = 0; c < 3; ++c)
      layer.weight.data.push_back(convolution.data[(i / pixels * 3 + c) * pixels + i % pixels]);
  }
  return layer;
}

DeviceVision LoadVision(LayerLoader& loader, const ClipVisionWeights& weights) {
  DeviceVision vision;
  vision.patches = loader.Dense(PatchLayer(weights.patch_embedding));
  std::vector<float> first = weights.position_embedding.data;
  std::ranges::transform(weights.class_embedding.data, first, first.begin(), std::plus<>());
  vision.first = loader.Floats(first);
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

// Columns [begin, end) of each step of the conditioning vector, of all blocks' modulations, without
// their biases.
Linear ConditionPart(const std::vector<DitBlock>& blocks, const DitConfig& config, int begin,
                     int end) {
  Linear out;
  for (const DitBlock& block : blocks) {
    const int64_t pitch = block.modulation.weight.shape[1];
    const std::vector<float>& all = block.modulation.weight.data;
    for (auto row = all.begin(); row != all.end(); row += pitch) {
      auto step = row + (pitch - config.CondDim());
      for (int i = 0; i < config.n_obs_steps; ++i, step += config.StepDim())
        out.weight.data.insert(out.weight.data.end(), step + begin, step + end);
    }
  }
  const int64_t columns = int64_t{config.n_obs_steps} * (end - begin);
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
  resize_x.clear(), resize_y.clear();
  encoders.clear(), vision.clear();
  picture_tables = loader.PictureTables(checkpoint_->stats.cameras);
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
  const int without_text = config.StepDim() - config.TextDim();
  condition = loader.Dense(ConditionPart(weights.blocks, config, 0, without_text));
  if (config.TextDim() > 0)
    text_condition =
        loader.Dense(ConditionPart(weights.blocks, config, without_text, config.StepDim()));
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
  return SharedWeights<DeviceDit>(checkpoint, format);
}

}  // namespace mjp
