#include "apps/image_diffusion/grid.h"

#include <algorithm>
#include <cmath>

namespace mjp::app {

Picture MakeGrid(std::span<const float> x, int size, int channels) {
  constexpr int kEdge = 64, kGap = 2;  // about the pixels of one picture, and between two
  constexpr uint8_t kPaper = 255;
  const int64_t bytes = int64_t{size} * size * channels;
  const int count = static_cast<int>(static_cast<int64_t>(x.size()) / bytes);
  const int factor = std::max(1, kEdge / size), cell = size * factor + kGap;
  const int columns = static_cast<int>(std::ceil(std::sqrt(count)));
  const int rows = (count + columns - 1) / columns;
  // even sizes, as videos want them
  Picture grid((columns * cell + kGap + 1) / 2 * 2, (rows * cell + kGap + 1) / 2 * 2, kPaper);
  std::vector<uint8_t> rgb(size_t{3} * size * size);
  for (int i = 0; i < count; ++i) {
    const float* from = x.data() + i * bytes;
    for (int p = 0; p < size * size; ++p) {
      for (int c = 0; c < 3; ++c) {
        const float value = from[p * channels + (channels == 3 ? c : 0)];
        rgb[p * 3 + c] =
            static_cast<uint8_t>(std::lround(std::clamp(value * 127.5f + 127.5f, 0.0f, 255.0f)));
      }
    }
    Paste(grid, rgb.data(), size, size, factor, kGap + i % columns * cell,
          kGap + i / columns * cell);
  }
  return grid;
}

}  // namespace mjp::app
