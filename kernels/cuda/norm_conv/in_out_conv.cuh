#ifndef KERNELS_CUDA_NORM_CONV_IN_OUT_CONV_CUH_
#define KERNELS_CUDA_NORM_CONV_IN_OUT_CONV_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/shared/format.h"

// The first convolution and the head of the norm_conv U-Net: few channels, so no tensor cores.

namespace mjp {

// The first block's convolution of x and its 1x1 shortcut.
struct FirstConvArgs {
  int rows = 0, length = 0, taps = 0;
  int in_c = 0, pitch = 0, out_c = 0;
  const void* x = nullptr;                 // (rows, length, pitch), storage
  const float* weight = nullptr;           // (taps, in_c, out_c), rounded as operands
  const float* shortcut_weight = nullptr;  // (in_c, out_c), rounded as operands
  const float *bias = nullptr, *shortcut_bias = nullptr;
  void *y = nullptr, *shortcut_y = nullptr;  // (rows, length, out_c), storage
};
inline constexpr int kMaxFirstChannels = 16;                  // in_c
inline constexpr int kMaxFirstTerms = 5 * kMaxFirstChannels;  // in_c * taps
inline constexpr int kMaxFirstElements = 1024;                // length * in_c
void LaunchFirstConv(Format format, const FirstConvArgs& args, cudaStream_t stream);

// The head: GroupNorm and Mish of the final convolution's raw output, then the 1x1 convolution to
// the actions.
struct HeadArgs {
  int rows = 0, length = 0, out_c = 0;
  NormConvSource source;          // (rows, length, channels); `materialized` must be null
  const float* weight = nullptr;  // (out_c, channels), rounded as operands
  const float* bias = nullptr;    // (out_c)
  float* y = nullptr;             // (rows, length, out_c)
};
// Whether the kernel runs this head.
bool HeadSupports(Format format, const HeadArgs& args);
void LaunchHead(Format format, const HeadArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_IN_OUT_CONV_CUH_
