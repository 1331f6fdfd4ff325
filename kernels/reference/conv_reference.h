#ifndef KERNELS_REFERENCE_CONV_REFERENCE_H_
#define KERNELS_REFERENCE_CONV_REFERENCE_H_

#include <cstdint>
#include <vector>

// The definition of the convolutions in double precision, for tests. Layouts are the original
// libraries': x (batch, in, height, width), weight (out, in, kernel_h, kernel_w).

namespace mjp::reference {

struct ConvShape {
  int batch = 1, in = 1, height = 1, width = 1;
  int out = 1, kernel_h = 1, kernel_w = 1, stride = 1, pad_h = 0, pad_w = 0;

  int OutHeight() const { return (height + 2 * pad_h - kernel_h) / stride + 1; }
  int OutWidth() const { return (width + 2 * pad_w - kernel_w) / stride + 1; }
};

// y (batch, out, out height, out width); bias (out) or null.
template <typename X>
std::vector<double> Conv(const ConvShape& s, const X* x, const float* weight, const float* bias) {
  std::vector<double> y;
  for (int n = 0; n < s.batch; ++n) {
    for (int o = 0; o < s.out; ++o) {
      for (int h = 0; h < s.OutHeight(); ++h) {
        for (int w = 0; w < s.OutWidth(); ++w) {
          double sum = bias == nullptr ? 0.0 : bias[o];
          for (int i = 0; i < s.in; ++i) {
            for (int kh = 0; kh < s.kernel_h; ++kh) {
              for (int kw = 0; kw < s.kernel_w; ++kw) {
                const int row = h * s.stride + kh - s.pad_h, column = w * s.stride + kw - s.pad_w;
                if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
                const int64_t from = ((int64_t{n} * s.in + i) * s.height + row) * s.width + column;
                const int64_t tap = ((int64_t{o} * s.in + i) * s.kernel_h + kh) * s.kernel_w + kw;
                sum += static_cast<double>(x[from]) * weight[tap];
              }
            }
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

// ConvTranspose1d, kernel 4, stride 2, padding 1: x (batch, in, length), weight (in, out, 4),
// y (batch, out, 2 length).
template <typename X>
std::vector<double> TransposedConv1d(int batch, int in, int out, int length, const X* x,
                                     const float* weight, const float* bias) {
  std::vector<double> y(size_t{2} * batch * out * length);
  for (int n = 0; n < batch; ++n) {
    for (int o = 0; o < out; ++o) {
      double* row = y.data() + (int64_t{n} * out + o) * 2 * length;
      for (int l = 0; l < 2 * length; ++l) row[l] = bias[o];
      for (int i = 0; i < in; ++i) {
        for (int l = 0; l < length; ++l) {
          for (int tap = 0; tap < 4; ++tap) {
            const int to = 2 * l + tap - 1;
            if (to < 0 || to >= 2 * length) continue;
            row[to] += static_cast<double>(x[(int64_t{n} * in + i) * length + l]) *
                       weight[(int64_t{i} * out + o) * 4 + tap];
          }
        }
      }
    }
  }
  return y;
}

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_CONV_REFERENCE_H_
