#ifndef KERNELS_REFERENCE_RESIDUAL_BLOCK_H_
#define KERNELS_REFERENCE_RESIDUAL_BLOCK_H_

#include <cstddef>
#include <vector>

#include "kernels/reference/conv_reference.h"
#include "kernels/reference/group_norm_reference.h"

// The definition of a layer of the 1-D U-Net, and of its residual block, in double precision, for
// tests. Signals are of one row, (channels, length).

namespace mjp::reference {

struct Signal {
  int channels = 0, length = 0;
  std::vector<double> values;  // channels x length
};

inline Signal Concatenated(const Signal& a, const Signal& b) {
  Signal both = {a.channels + b.channels, a.length, a.values};
  both.values.insert(both.values.end(), b.values.begin(), b.values.end());
  return both;
}

// Out channels [begin, end) of a convolution; weight (out, in, taps), bias (out).
inline Signal Conv1d(const Signal& x, const float* weight, const float* bias, int taps, int stride,
                     int pad, int begin, int end) {
  ConvShape s;
  s.in = x.channels, s.width = x.length, s.out = end - begin;
  s.kernel_w = taps, s.stride = stride, s.pad_w = pad;
  const size_t first = static_cast<size_t>(begin) * x.channels * taps;
  return {end - begin, s.OutWidth(), Conv(s, x.values.data(), weight + first, bias + begin)};
}
// Out channels [begin, end) of `out` of a transposed one, kernel 4, stride 2, padding 1; weight
// (in, out, 4).
inline Signal Upsample1d(const Signal& x, const float* weight, const float* bias, int out,
                         int begin, int end) {
  const std::vector<double> all =
      TransposedConv1d(1, x.channels, out, x.length, x.values.data(), weight, bias);
  const int length = 2 * x.length;
  return {end - begin,
          length,
          {all.begin() + static_cast<ptrdiff_t>(begin) * length,
           all.begin() + static_cast<ptrdiff_t>(end) * length}};
}

// Mish(GN(x)) in place; weight, bias (channels).
inline void NormMish(Signal& x, int groups, const float* weight, const float* bias) {
  std::vector<double> by_position(x.values.size());
  for (int c = 0; c < x.channels; ++c)
    for (int l = 0; l < x.length; ++l)
      by_position[static_cast<size_t>(l) * x.channels + c] =
          x.values[static_cast<size_t>(c) * x.length + l];
  by_position = GroupNorm(by_position, 1, x.length, x.channels, groups, weight, bias);
  for (int c = 0; c < x.channels; ++c)
    for (int l = 0; l < x.length; ++l)
      x.values[static_cast<size_t>(c) * x.length + l] =
          Activate(Activation::kMish, by_position[static_cast<size_t>(l) * x.channels + c]);
}

// scale * x + bias of each channel, in place; scale (channels) or empty: 1.
inline void Film(Signal& x, const std::vector<double>& scale, const std::vector<double>& bias) {
  for (int c = 0; c < x.channels; ++c)
    for (int l = 0; l < x.length; ++l) {
      double& v = x.values[static_cast<size_t>(c) * x.length + l];
      v = (scale.empty() ? v : scale[c] * v) + bias[c];
    }
}

inline void AddTo(Signal& x, const Signal& other) {
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += other.values[i];
}

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_RESIDUAL_BLOCK_H_
