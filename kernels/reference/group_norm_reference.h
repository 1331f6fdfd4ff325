#ifndef KERNELS_REFERENCE_GROUP_NORM_REFERENCE_H_
#define KERNELS_REFERENCE_GROUP_NORM_REFERENCE_H_

#include <cmath>
#include <vector>

#include "kernels/shared/activation.h"

// The definition of group normalisation and of the activations in double precision, for tests.

namespace mjp::reference {

inline double Activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kMish:
      return x * std::tanh(std::log1p(std::exp(x)));
  }
  return x;
}

// GN(x) of x (batch, positions, channels), eps 1e-5, biased variance.
inline std::vector<double> GroupNorm(const std::vector<double>& x, int batch, int positions,
                                     int channels, int groups, const float* weight,
                                     const float* bias) {
  std::vector<double> y(x.size());
  const int size = channels / groups;
  for (int n = 0; n < batch; ++n) {
    const size_t base = size_t{1} * n * positions * channels;
    for (int g = 0; g < groups; ++g) {
      double mean = 0, variance = 0;
      for (int l = 0; l < positions; ++l) {
        for (int c = g * size; c < (g + 1) * size; ++c) mean += x[base + l * channels + c];
      }
      mean /= double(size) * positions;
      for (int l = 0; l < positions; ++l) {
        for (int c = g * size; c < (g + 1) * size; ++c) {
          variance += std::pow(x[base + l * channels + c] - mean, 2);
        }
      }
      const double deviation = std::sqrt(variance / (double(size) * positions) + 1e-5);
      for (int l = 0; l < positions; ++l) {
        for (int c = g * size; c < (g + 1) * size; ++c) {
          const size_t i = base + l * channels + c;
          y[i] = (x[i] - mean) / deviation * weight[c] + bias[c];
        }
      }
    }
  }
  return y;
}

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_GROUP_NORM_REFERENCE_H_
