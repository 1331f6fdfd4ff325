#ifndef KERNELS_CPU_GROUP_NORM_H_
#define KERNELS_CPU_GROUP_NORM_H_

#include "kernels/cpu/features.h"
#include "kernels/shared/activation.h"

// What follows a convolution: group normalisation (eps 1e-5, biased variance over the positions and
// the channels of a group), activation, FiLM and residual, in one pass over the maps:
//   y = FiLM(act(GN(y))) + residual      (U-Net)
//   y = act(GN(y) + residual)            (ResNet: residual_first)

namespace mjp::cpu {

// Most channels of one group.
inline constexpr int kMaxGroupChannels = 2048;

// FiLM terms of batch row n: y = scale y + bias, where each term is the sum of a part that depends
// on the denoising step and a part that depends on the observation:
//   scale[c] = step_table[step[n] * pitch + c] + cond[row[n] * pitch + c]
//   bias [c] = the same, bias_offset floats further
struct FilmArgs {
  const float* step_table = nullptr;  // (steps, pitch), at this layer's scale; null: no FiLM
  const float* cond = nullptr;        // (environments, pitch), likewise
  const int* step = nullptr;          // (batch)
  const int* row = nullptr;           // (batch): environment
  int pitch = 0;
  int bias_offset = 0;  // 0: there is no scale, the bias stands first
};

struct GroupNormArgs {
  Features y;                                      // in and out
  int groups = 0;                                  // 0: no normalisation
  const float *weight = nullptr, *bias = nullptr;  // (channels)
  Activation activation = Activation::kNone;
  FilmArgs film;
  Features residual;  // like y but for pitch and halo; data null: none
  bool residual_first = false;
};

// Applies the layer to `block`, whose channel range is made of whole groups.
void Normalize(const GroupNormArgs& args, const Block& block);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_GROUP_NORM_H_
