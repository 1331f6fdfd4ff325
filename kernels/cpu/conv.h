#ifndef KERNELS_CPU_CONV_H_
#define KERNELS_CPU_CONV_H_

#include "kernels/cpu/features.h"
#include "kernels/cpu/product/product.h"

// Convolutions of one and two dimensions and linear layers on the CPU, channel-last, as calls of
// the one product (kernels/cpu/product/product.h). Weights are repacked once from the original
// libraries' layouts.

namespace mjp::cpu {

// A layer ready to run. Immutable; shared between threads.
struct ConvLayer {
  int in = 0, out = 0;             // channels
  int kernel_h = 1, kernel_w = 1;  // 1-D: kernel_h 1
  int stride = 1, pad_h = 0, pad_w = 0;
  bool transposed = false;        // 1-D, kernel 4, stride 2, padding 1: twice as long
  PackedWeights weights[2] = {};  // [1]: of the odd positions of a transposed one
  AlignedBuffer bias = {};        // (out)

  int OutputSize(int input, int kernel, int pad) const {
    return transposed ? 2 * input : (input + 2 * pad - kernel) / stride + 1;
  }
};

// weight (out, in, kernel), padding kernel / 2; bias (out) or null.
ConvLayer MakeConv1d(const float* weight, const float* bias, int out, int in, int kernel,
                     int stride);
// weight (in, out, 4): transposed, stride 2, padding 1.
ConvLayer MakeTransposedConv1d(const float* weight, const float* bias, int out, int in);
// weight (out, in, kernel, kernel), padding kernel / 2; bias (out) or null.
ConvLayer MakeConv2d(const float* weight, const float* bias, int out, int in, int kernel,
                     int stride);
// weight (out, in); bias (out) or null. `in` may be a slice of rows of `in_pitch`.
ConvLayer MakeLinear(const float* weight, const float* bias, int out, int in, int in_pitch);

// y = layer(x) for `block` of y. The halo of x is at least the padding, and y has the layer's
// output size and channels.
void Convolve(const ConvLayer& layer, const Features& x, const Features& y, const Block& block);

// y (rows, out) = x (rows, in) W + b for output channels [channel_begin, channel_end).
void LinearRows(const ConvLayer& layer, const float* x, int64_t x_pitch, int rows, float* y,
                int64_t y_pitch, int channel_begin, int channel_end);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_CONV_H_
