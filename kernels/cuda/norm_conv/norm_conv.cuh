#ifndef KERNELS_CUDA_NORM_CONV_NORM_CONV_CUH_
#define KERNELS_CUDA_NORM_CONV_NORM_CONV_CUH_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/shared/format.h"

// A U-Net's convolution with the norm behind it, as its persistent kernels have them: shapes, and
// weights in the order of the tensor cores' fragments.

namespace mjp {

inline constexpr int kStepBytes = 32;       // of k, in one multiplication
inline constexpr int kFragmentBytes = 512;  // of 16 out channels and one k step
inline constexpr int kChunkFragments = 4;   // fragments that move together
inline constexpr int kChunkBytes = kChunkFragments * kFragmentBytes;
inline constexpr int kPackChannels = 8;    // channels that move together
inline constexpr int kMaxClusterCtas = 8;  // of a portable cluster
inline constexpr float kNormEpsilon = 1e-5f;

// Lengths are powers of two. taps 1, 3 or 5 of stride 1 or 2; or phases 2 with taps 2: transposed
// k4 s2 p1.
struct NormConvShape {
  int rows = 1, in_length = 1, out_length = 1;  // out_length: of one phase
  int in_c = 0, out_c = 0;
  int taps = 1, stride = 1, pad = 0, phases = 1;
  bool shortcut = false;  // and the block's 1x1 convolution of the same input
};

// Weights (out, in, taps), or (in, out, 4) where phases = 2, and the 1x1 (out, in) or null, in the
// order of the tensor cores' fragments: [phase][out / 16][in block][tap, 1x1][lane][16 bytes].
std::vector<uint8_t> PackWeightFragments(Format format, const NormConvShape& shape,
                                         const float* weight, const float* shortcut);
// Bytes that PackWeightFragments returns.
size_t WeightFragmentBytes(Format format, const NormConvShape& shape);

// The first block's convolution of x and its 1x1 shortcut, of few channels: the megakernel's
// epilogue warps compute it, the row kernel multiplies it with zeros for the others.
struct FirstConvWeights {
  int taps = 0, in_c = 0, out_c = 0;
  int pitch = 0;                           // channels of a position of x, with padding
  const float* weight = nullptr;           // (taps, in_c, out_c), rounded as operands
  const float* shortcut_weight = nullptr;  // (in_c, out_c), rounded as operands
  const float *bias = nullptr, *shortcut_bias = nullptr;
};
inline constexpr int kMaxFirstChannels = 16;                  // in_c
inline constexpr int kMaxFirstTerms = 5 * kMaxFirstChannels;  // in_c * taps
inline constexpr int kMaxFirstElements = 1024;                // length * in_c

// The head: the 1x1 convolution to the actions.
struct HeadWeights {
  int out_c = 0;
  const float* weight = nullptr;  // (out_c, channels), rounded as operands
  const float* bias = nullptr;    // (out_c)
};

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_NORM_CONV_CUH_
