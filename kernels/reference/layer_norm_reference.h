#ifndef KERNELS_REFERENCE_LAYER_NORM_REFERENCE_H_
#define KERNELS_REFERENCE_LAYER_NORM_REFERENCE_H_

#include <cmath>
#include <vector>

// The definition of layer normalisation in double precision, for tests.

namespace mjp::reference {

// (x - mean) / sqrt(biased variance + epsilon) of every row of x (rows, width), times weight plus
// bias where they are not null.
inline std::vector<double> LayerNorm(const std::vector<double>& x, int width, double epsilon,
                                     const float* weight, const float* bias) {
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, variance = 0;
    for (int c = 0; c < width; ++c) mean += x[row + c] / width;
    for (int c = 0; c < width; ++c) variance += std::pow(x[row + c] - mean, 2) / width;
    for (int c = 0; c < width; ++c) {
      y[row + c] = (x[row + c] - mean) / std::sqrt(variance + epsilon);
      if (weight != nullptr) y[row + c] = y[row + c] * weight[c] + bias[c];
    }
  }
  return y;
}

// AdaLN: y (1 + scale) + shift, where each sequence of `rows` rows has its own (width) terms.
template <typename Terms>
std::vector<double> Modulate(std::vector<double> y, int width, int rows, const Terms& scale,
                             const Terms& shift) {
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t term = i / width / rows * width + i % width;
    y[i] = y[i] * (1.0 + scale[term]) + shift[term];
  }
  return y;
}

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_LAYER_NORM_REFERENCE_H_
