#include <algorithm>
#include <array>
#include <cmath>

#include "image_diffusion/data/pictures.h"

namespace mjp {
namespace {

// How much of source pixel `i` lies in [begin, end).
double Overlap(int i, double begin, double end) {
  return std::max(0.0, std::min(end, i + 1.0) - std::max(begin, static_cast<double>(i)));
}

// Each channel's mean over a rectangle of the picture; a rectangle within one pixel is that pixel.
std::array<double, 3> AreaMean(const uint8_t* pixels, int width, int channels, const double (&y)[2],
                               const double (&x)[2]) {
  std::array<double, 3> mean = {};
  double weight = 0;
  for (int row = static_cast<int>(y[0]); row < y[1]; ++row) {
    for (int column = static_cast<int>(x[0]); column < x[1]; ++column) {
      const double part = Overlap(row, y[0], y[1]) * Overlap(column, x[0], x[1]);
      const uint8_t* pixel = pixels + (int64_t{row} * width + column) * channels;
      for (int c = 0; c < channels; ++c) mean[c] += part * pixel[c];
      weight += part;
    }
  }
  for (double& m : mean) m /= weight;
  return mean;
}

}  // namespace

std::vector<uint8_t> FitPicture(const uint8_t* pixels, int height, int width, int in_channels,
                                int size, int channels) {
  const int edge = std::min(height, width), top = (height - edge) / 2, left = (width - edge) / 2;
  if (height == size && width == size && in_channels == channels) {
    return {pixels, pixels + int64_t{size} * size * channels};
  }
  const double scale = static_cast<double>(edge) / size;
  std::vector<uint8_t> out(size_t{1} * size * size * channels);
  for (int row = 0; row < size; ++row) {
    const double y[2] = {top + row * scale, std::min<double>(height, top + (row + 1) * scale)};
    for (int column = 0; column < size; ++column) {
      const double x[2] = {left + column * scale,
                           std::min<double>(width, left + (column + 1) * scale)};
      std::array<double, 3> mean = AreaMean(pixels, width, in_channels, y, x);
      if (in_channels == 1) mean[1] = mean[2] = mean[0];
      if (channels == 1) mean[0] = (mean[0] + mean[1] + mean[2]) / 3;
      uint8_t* to = out.data() + (int64_t{row} * size + column) * channels;
      for (int c = 0; c < channels; ++c) to[c] = static_cast<uint8_t>(std::lround(mean[c]));
    }
  }
  return out;
}

}  // namespace mjp
