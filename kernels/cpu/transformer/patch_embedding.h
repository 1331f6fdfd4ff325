#ifndef KERNELS_CPU_TRANSFORMER_PATCH_EMBEDDING_H_
#define KERNELS_CPU_TRANSFORMER_PATCH_EMBEDDING_H_

#include <cstdint>

#include "kernels/cpu/conv.h"

// The first layer of a vision transformer: a convolution whose stride is its kernel, so that every
// square patch of the picture becomes one token.

namespace mjp::cpu {

// weight (width, channels, patch, patch); bias (width) or null.
ConvLayer MakePatchEmbedding(const float* weight, const float* bias, int width, int channels,
                             int patch);

// tokens (patches, width), row-major over the patches, of picture `n` of x, for token columns
// [channel_begin, channel_end). Pixels beyond the last whole patch are not read.
void EmbedPatches(const ConvLayer& layer, const Features& x, int n, float* tokens, int64_t pitch,
                  int channel_begin, int channel_end);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_TRANSFORMER_PATCH_EMBEDDING_H_
