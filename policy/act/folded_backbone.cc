#include "policy/act/folded_backbone.h"

#include <cmath>
#include <utility>

namespace mjp {
namespace {

constexpr double kBatchNormEpsilon = 1e-5;

// conv and norm as one convolution with a bias.
Conv Folded(const Conv& conv, const BatchNorm& norm) {
  Conv folded = conv;
  const size_t channels = norm.weight.data.size(), row = conv.weight.data.size() / channels;
  folded.bias = {norm.bias.shape, std::vector<float>(channels)};
  for (size_t c = 0; c < channels; ++c) {
    const double scale = norm.weight.data[c] / std::sqrt(norm.variance.data[c] + kBatchNormEpsilon);
    for (size_t i = c * row; i < (c + 1) * row; ++i)
      folded.weight.data[i] = static_cast<float>(conv.weight.data[i] * scale);
    folded.bias.data[c] = static_cast<float>(norm.bias.data[c] - norm.mean.data[c] * scale);
  }
  return folded;
}

}  // namespace

EncoderConfig ActBackbone() {
  EncoderConfig config;
  config.kind = EncoderKind::kResNet18;
  config.pool = PoolKind::kNone;
  config.group_norm = false;
  return config;
}

EncoderWeights FoldedBackbone(const ResNetWeights& net) {
  EncoderWeights folded;
  folded.stem = Folded(net.stem, net.stem_norm);
  for (const ResNetBlock& block : net.blocks) {
    BasicBlock2d& b = folded.blocks.emplace_back();
    b.stride = block.stride;
    b.conv1 = Folded(block.conv1, block.norm1);
    b.conv2 = Folded(block.conv2, block.norm2);
    if (block.downsample) b.downsample = Folded(*block.downsample, block.downsample_norm);
  }
  return folded;
}

}  // namespace mjp
