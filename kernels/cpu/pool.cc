#include "kernels/cpu/pool.h"

#include <algorithm>

#include "kernels/shared/exact_math.h"

namespace mjp::cpu {

namespace {

// y = max(x, y), y where x is not a number
void Raise(const float* __restrict x, int channels, float* __restrict y) {
  for (int c = 0; c < channels; ++c) y[c] = y[c] < x[c] ? x[c] : y[c];
}

// y = max(x, 0) or x, x where it is not a number
void Begin(const float* __restrict x, int channels, bool relu, float* __restrict y) {
  for (int c = 0; c < channels; ++c) y[c] = relu && x[c] <= 0 ? 0.0f : x[c];
}

}  // namespace

void MaxPool(const Features& x, const Features& y, bool relu, int begin, int end) {
  for (int row = begin; row < end; ++row) {
    const int n = row / y.height, h = row % y.height;
    const int top = std::max(2 * h - 1, 0), bottom = std::min(2 * h + 1, x.height - 1);
    for (int w = 0; w < y.width; ++w) {
      float* out = y.At(n, h, w);
      Begin(x.At(n, 2 * h, 2 * w), y.channels, relu, out);  // the middle is always inside
      for (int i = top; i <= bottom; ++i) {
        for (int j = std::max(2 * w - 1, 0); j <= std::min(2 * w + 1, x.width - 1); ++j)
          Raise(x.At(n, i, j), y.channels, out);
      }
    }
  }
}

void AveragePool(const Features& x, float* features, int begin, int end) {
  const int cells = x.height * x.width;
  for (int n = begin; n < end; ++n) {
    for (int c = 0; c < x.channels; ++c) {
      double sum = 0;
      for (int i = 0; i < cells; ++i) sum += x.At(n, i / x.width, i % x.width)[c];
      features[n * x.channels + c] = static_cast<float>(sum / cells);
    }
  }
}

void SpatialSoftmax(const Features& logits, const float* pos_grid, float* keypoints, int begin,
                    int end) {
  const int cells = logits.height * logits.width;
  for (int n = begin; n < end; ++n) {
    for (int c = 0; c < logits.channels; ++c) {
      const auto logit = [&](int i) { return logits.At(n, i / logits.width, i % logits.width)[c]; };
      float largest = logit(0);
      for (int i = 1; i < cells; ++i) largest = std::max(largest, logit(i));
      double sum = 0, x = 0, y = 0;
      for (int i = 0; i < cells; ++i) {
        const double weight = exact::Exp(double{logit(i)} - largest);
        sum += weight;
        x += weight * pos_grid[2 * i];
        y += weight * pos_grid[2 * i + 1];
      }
      keypoints[(n * logits.channels + c) * 2] = static_cast<float>(x / sum);
      keypoints[(n * logits.channels + c) * 2 + 1] = static_cast<float>(y / sum);
    }
  }
}

}  // namespace mjp::cpu
