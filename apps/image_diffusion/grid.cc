#include "apps/image_diffusion/grid.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <string>

#include "base/error.h"

namespace mjp::app {

namespace {

constexpr int kGap = 2;  // pixels between two pictures

struct Layout {
  int factor, cell, columns, rows, width, height;
};

Layout LayoutOf(int count, int size) {
  constexpr int kEdge = 64;  // about the pixels of one picture
  Layout grid = {};
  grid.factor = std::max(1, kEdge / size);
  grid.cell = size * grid.factor + kGap;
  grid.columns = static_cast<int>(std::ceil(std::sqrt(count)));
  grid.rows = (count + grid.columns - 1) / grid.columns;
  // even sizes, as videos want them
  grid.width = (grid.columns * grid.cell + kGap + 1) / 2 * 2;
  grid.height = (grid.rows * grid.cell + kGap + 1) / 2 * 2;
  return grid;
}

}  // namespace

Picture MakeGrid(std::span<const float> x, int size, int channels) {
  constexpr uint8_t kPaper = 255;
  const int64_t bytes = int64_t{size} * size * channels;
  const int count = static_cast<int>(static_cast<int64_t>(x.size()) / bytes);
  const Layout layout = LayoutOf(count, size);
  Picture grid(layout.width, layout.height, kPaper);
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
    Paste(grid, rgb.data(), size, size, layout.factor, kGap + i % layout.columns * layout.cell,
          kGap + i / layout.columns * layout.cell);
  }
  return grid;
}

void CheckGrid(int count, int size) {
  const Layout layout = LayoutOf(count, size);
  if (int64_t{3} * layout.width * layout.height <= INT_MAX) return;
  throw mjp::Error(mjp::ExitCode::kUsage, "--n " + std::to_string(count) +
                                              ": the grid would be larger than a PNG of 2 GB; "
                                              "draw fewer pictures");
}

}  // namespace mjp::app
