#include "kernels/cpu/picture_resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

namespace mjp {
namespace {

constexpr int kRow = kDrawingSize * 3;

std::vector<uint8_t> RandomDrawing() {
  std::mt19937 generator(4);
  std::vector<uint8_t> drawing(kDrawingSize * kRow);
  for (uint8_t& v : drawing) v = static_cast<uint8_t>(generator());
  return drawing;
}

TEST(PictureResize, IsBilinearInterpolationWithinARounding) {
  const std::vector<uint8_t> drawing = RandomDrawing();
  std::vector<uint8_t> rgb(kReducedBytes);
  ResizeDrawing(drawing.data(), kRow, rgb.data());
  const auto value = [&](double y, double x, int c) {
    return static_cast<double>(
        drawing[static_cast<size_t>(y) * kRow + 3 * static_cast<size_t>(x) + c]);
  };
  for (int i = 0; i < kReducedBytes; ++i) {
    const int c = i % 3;
    const double x = (i / 3 % 96 + 0.5) * 512 / 96 - 0.5, y = (i / 288 + 0.5) * 512 / 96 - 0.5;
    const double x0 = std::floor(x), y0 = std::floor(y), fx = x - x0, fy = y - y0;
    const double expected = (1 - fy) * ((1 - fx) * value(y0, x0, c) + fx * value(y0, x0 + 1, c)) +
                            fy * ((1 - fx) * value(y0 + 1, x0, c) + fx * value(y0 + 1, x0 + 1, c));
    ASSERT_NEAR(rgb[i], expected, 1.0) << "value " << i;
  }
}

TEST(PictureResize, KeepsFlatColours) {
  for (int level = 0; level < 256; ++level) {
    const std::vector<uint8_t> drawing(kDrawingSize * kRow, static_cast<uint8_t>(level));
    std::vector<uint8_t> rgb(kReducedBytes);
    ResizeDrawing(drawing.data(), kRow, rgb.data());
    ASSERT_EQ(rgb, std::vector<uint8_t>(kReducedBytes, static_cast<uint8_t>(level)));
  }
}

TEST(PictureResize, ReadsBottomUpDrawings) {
  const std::vector<uint8_t> drawing = RandomDrawing();
  std::vector<uint8_t> flipped;
  for (int row = kDrawingSize - 1; row >= 0; --row) {
    flipped.insert(flipped.end(), drawing.begin() + row * kRow, drawing.begin() + (row + 1) * kRow);
  }
  std::vector<uint8_t> top_down(kReducedBytes), bottom_up(kReducedBytes);
  ResizeDrawing(drawing.data(), kRow, top_down.data());
  ResizeDrawing(flipped.data() + (kDrawingSize - 1) * kRow, -kRow, bottom_up.data());
  EXPECT_EQ(top_down, bottom_up);
}

}  // namespace
}  // namespace mjp
