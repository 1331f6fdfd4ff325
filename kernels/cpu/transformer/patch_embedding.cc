#include "kernels/cpu/transformer/patch_embedding.h"

namespace mjp::cpu {

ConvLayer MakePatchEmbedding(const float* weight, const float* bias, int width, int channels,
                             int patch) {
  ConvLayer layer = MakeConv2d(weight, bias, width, channels, patch, patch);
  layer.pad_h = layer.pad_w = 0;
  return layer;
}

void EmbedPatches(const ConvLayer& layer, const Features& x, int n, float* tokens, int64_t pitch,
                  int channel_begin, int channel_end) {
  Features picture = x;
  picture.data = x.At(n, 0, 0);
  picture.batch = 1;
  const Features y{.data = tokens,
                   .batch = 1,
                   .height = layer.OutputSize(x.height, layer.kernel_h, 0),
                   .width = layer.OutputSize(x.width, layer.kernel_w, 0),
                   .channels = layer.out,
                   .pitch = static_cast<int>(pitch)};
  Convolve(layer, picture, y, {0, 1, channel_begin, channel_end});
}

}  // namespace mjp::cpu
