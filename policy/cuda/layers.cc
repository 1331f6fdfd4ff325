#include "policy/cuda/layers.h"

#include "kernels/shared/stored_element.h"
#include "policy/checkpoint/normalizer.h"

namespace mjp {

DeviceConv LayerLoader::Pack(ConvShape shape, const Tensor& weight, const Tensor& bias,
                             int in_channels) {
  shape.in_c = PaddedChannels(in_channels);
  DeviceConv out;
  out.shape = shape;
  const size_t bytes = PackedConvBytes(format_, shape);
  void* packed = arena_.TakeBytes(bytes);
  if (!arena_.measuring()) {
    arena_.UploadForGood(
        packed, PackConvWeights(format_, shape, weight.data.data(), in_channels).data(), bytes);
  }
  out.weight = packed;
  if (!bias.data.empty()) out.bias = Floats(bias.data);
  return out;
}

DeviceConv LayerLoader::Conv1d(const Conv& conv, int stride, int pad) {
  ConvShape s;
  s.out_c = static_cast<int>(conv.weight.shape[0]);
  s.kernel_w = static_cast<int>(conv.weight.shape[2]);
  s.stride = stride;
  s.pad_w = pad;
  return Pack(s, conv.weight, conv.bias, static_cast<int>(conv.weight.shape[1]));
}

DeviceConv LayerLoader::Transposed1d(const Conv& conv) {
  ConvShape s;
  s.out_c = static_cast<int>(conv.weight.shape[1]);
  s.kernel_w = 2;
  s.pad_w = 1;
  s.phases = 2;
  return Pack(s, conv.weight, conv.bias, static_cast<int>(conv.weight.shape[0]));
}

DeviceConv LayerLoader::Conv2d(const Conv& conv, int stride, int pad) {
  ConvShape s;
  s.out_c = static_cast<int>(conv.weight.shape[0]);
  s.kernel_h = static_cast<int>(conv.weight.shape[2]);
  s.kernel_w = static_cast<int>(conv.weight.shape[3]);
  s.stride = stride;
  s.pad_h = s.pad_w = pad;
  return Pack(s, conv.weight, conv.bias, static_cast<int>(conv.weight.shape[1]));
}

DeviceConv LayerLoader::Dense(const Linear& linear) {
  ConvShape s;
  s.out_c = static_cast<int>(linear.weight.shape[0]);
  return Pack(s, linear.weight, linear.bias, static_cast<int>(linear.weight.shape[1]));
}

DeviceNormConv LayerLoader::PackNormConv(const NormConvShape& shape, const Conv& conv,
                                         const Conv* shortcut) {
  DeviceNormConv out;
  out.shape = shape;
  out.shape.shortcut = shortcut != nullptr;
  const size_t bytes = WeightFragmentBytes(format_, out.shape);
  void* packed = arena_.TakeBytes(bytes);
  if (!arena_.measuring()) {
    const float* shortcut_weight = shortcut ? shortcut->weight.data.data() : nullptr;
    arena_.UploadForGood(
        packed,
        PackWeightFragments(format_, out.shape, conv.weight.data.data(), shortcut_weight).data(),
        bytes);
  }
  out.weight = packed;
  out.bias = Floats(conv.bias.data);
  if (shortcut) out.shortcut_bias = Floats(shortcut->bias.data);
  return out;
}

DeviceNormConv LayerLoader::NormConv1d(const Conv& conv, int stride, int pad,
                                       const Conv* shortcut) {
  NormConvShape s;
  s.out_c = static_cast<int>(conv.weight.shape[0]);
  s.in_c = static_cast<int>(conv.weight.shape[1]);
  s.taps = static_cast<int>(conv.weight.shape[2]);
  s.stride = stride;
  s.pad = pad;
  return PackNormConv(s, conv, shortcut);
}

DeviceNormConv LayerLoader::NormConvTransposed1d(const Conv& conv) {
  NormConvShape s;
  s.in_c = static_cast<int>(conv.weight.shape[0]);
  s.out_c = static_cast<int>(conv.weight.shape[1]);
  s.taps = 2;
  s.phases = 2;
  return PackNormConv(s, conv, nullptr);
}

const float* LayerLoader::FirstWeights(const Tensor& weight) {
  const size_t out = weight.shape[0], in = weight.shape[1], taps = weight.shape[2];
  std::vector<float> turned(weight.data.size());
  for (size_t o = 0; o < out; ++o)
    for (size_t i = 0; i < in; ++i)
      for (size_t k = 0; k < taps; ++k)
        turned[(k * in + i) * out + o] = weight.data[(o * in + i) * taps + k];
  return Operands(turned);
}

const float* LayerLoader::Operands(const std::vector<float>& values) {
  std::vector<float> rounded = values;
  for (float& v : rounded) v = RoundedOperand(format_, v);
  return Floats(rounded);
}

DeviceNorm LayerLoader::Norm(const GroupNorm& norm) {
  DeviceNorm out;
  out.groups = norm.groups;
  if (norm.groups == 0) return out;
  out.weight = Floats(norm.weight.data);
  out.bias = Floats(norm.bias.data);
  return out;
}

const float* LayerLoader::Floats(const std::vector<float>& values) {
  float* device = arena_.Take<float>(values.size());
  arena_.UploadForGood(device, values.data(), values.size() * sizeof(float));
  return device;
}

const void* LayerLoader::Stored(const std::vector<float>& values) {
  const size_t element = FormatBytes(format_);
  std::vector<uint8_t> stored(values.size() * element);
  for (size_t i = 0; i < values.size(); ++i)
    StoreElement(format_, values[i], stored.data() + i * element);
  void* device = arena_.TakeBytes(stored.size());
  arena_.UploadForGood(device, stored.data(), stored.size());
  return device;
}

const float* LayerLoader::PictureTables(const std::vector<FeatureStats>& cameras) {
  std::vector<float> tables;
  for (const FeatureStats& stats : cameras)
    for (int channel = 0; channel < 3; ++channel)
      for (int byte = 0; byte < 256; ++byte)
        tables.push_back(Normalize(stats, channel, static_cast<float>(byte) / 255.0f));
  return Floats(tables);
}

namespace {

struct OpLauncher {
  Format format;
  cudaStream_t stream;
  void operator()(const ConvArgs& a) const { LaunchConv(format, a, stream); }
  void operator()(const ConvGroupNormArgs& a) const { LaunchConvGroupNorm(format, a, stream); }
  void operator()(const GroupNormArgs& a) const { LaunchGroupNorm(format, a, stream); }
  void operator()(const MaxPoolArgs& a) const { LaunchMaxPool(format, a, stream); }
  void operator()(const GroupNormMaxPoolArgs& a) const {
    LaunchGroupNormMaxPool(format, a, stream);
  }
  void operator()(const StemMaxPoolArgs& a) const { LaunchStemMaxPool(format, a, stream); }
  void operator()(const FeatureHeadArgs& a) const { LaunchFeatureHead(format, a, stream); }
  void operator()(const encoder_kernel::Args& a) const {
    encoder_kernel::LaunchEncoderKernel(format, a, stream);
  }
  void operator()(const AveragePoolOp& a) const {
    LaunchAveragePool(format, a.x, a.frames, a.cells, a.channels, a.features, stream);
  }
  void operator()(const SpatialSoftmaxOp& a) const {
    LaunchSpatialSoftmax(format, a.logits, a.pos_grid, a.frames, a.cells, a.keypoints, a.out,
                         stream);
  }
};

}  // namespace

void LaunchOp(Format format, const Op& op, cudaStream_t stream) {
  std::visit(OpLauncher{format, stream}, op);
}

}  // namespace mjp
