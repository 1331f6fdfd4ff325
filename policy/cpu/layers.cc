#include "policy/cpu/layers.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace mjp::cpu {
namespace {

AlignedBuffer Copy(const Tensor& tensor) {
  AlignedBuffer copy(tensor.data.size());
  std::copy(tensor.data.begin(), tensor.data.end(), copy.data());
  return copy;
}

const float* BiasOf(const Conv& conv) {
  return conv.bias.data.empty() ? nullptr : conv.bias.data.data();
}

int Extent(const Tensor& tensor, int axis) { return static_cast<int>(tensor.shape[axis]); }

}  // namespace

NormLayer PackNorm(const GroupNorm& norm) {
  if (norm.groups == 0) return {};
  const int channels = Extent(norm.weight, 0);
  if (channels % norm.groups != 0 || channels / norm.groups > kMaxGroupChannels) {
    throw Unsupported("group norm of " + std::to_string(channels) + " channels in " +
                      std::to_string(norm.groups) + " groups: the CPU backend needs equal groups " +
                      "of at most " + std::to_string(kMaxGroupChannels) + " channels");
  }
  return {norm.groups, Copy(norm.weight), Copy(norm.bias)};
}

ConvLayer PackConv1d(const Conv& conv, int stride) {
  const Tensor& w = conv.weight;
  return MakeConv1d(w.data.data(), BiasOf(conv), Extent(w, 0), Extent(w, 1), Extent(w, 2), stride);
}

ConvLayer PackTransposedConv1d(const Conv& conv) {
  const Tensor& w = conv.weight;
  return MakeTransposedConv1d(w.data.data(), BiasOf(conv), Extent(w, 1), Extent(w, 0));
}

ConvLayer PackConv2d(const Conv& conv, int stride) {
  const Tensor& w = conv.weight;
  return MakeConv2d(w.data.data(), BiasOf(conv), Extent(w, 0), Extent(w, 1), Extent(w, 2), stride);
}

ConvLayer PackLinear(const Linear& linear) {
  const Tensor& w = linear.weight;
  return MakeLinear(w.data.data(), linear.bias.data.data(), Extent(w, 0), Extent(w, 1),
                    Extent(w, 1));
}

OwnedFeatures MakeFeatures(int batch, int height, int width, int channels, int halo_y, int halo_x) {
  OwnedFeatures features;
  Features& view = features.view;
  view = {nullptr, batch, height, width, channels, channels, halo_y, halo_x};
  features.memory = AlignedBuffer(batch * view.BatchStride());
  view.data = features.memory.data() + halo_y * view.RowStride() + int64_t{halo_x} * channels;
  return features;
}

}  // namespace mjp::cpu
