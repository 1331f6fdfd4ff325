#include "kernels/cpu/prepare.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp::cpu::PrepareArgs;
using mjp::cpu::ResizeTaps;
using mjp_test::GuardedFeatures;

std::vector<uint8_t> Picture(int frames, int height, int width) {
  std::vector<uint8_t> rgb(size_t{3} * frames * height * width);
  for (size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<uint8_t>(i * 37 + i / 97);
  return rgb;
}

std::vector<float> Table() {
  std::vector<float> table(3 * 256);
  for (int i = 0; i < 3 * 256; ++i) table[i] = static_cast<float>(i % 256) / 128 - 1 + i / 256;
  return table;
}

TEST(PrepareTest, CropsAndNormalises) {
  const int frames = 2, height = 12, width = 10;
  const std::vector<uint8_t> rgb = Picture(frames, height, width);
  const std::vector<float> table = Table();
  GuardedFeatures y(
      {.batch = frames, .height = 8, .width = 6, .channels = 3, .halo_y = 3, .halo_x = 3});
  PrepareArgs args;
  args.rgb = rgb.data();
  args.frame_stride = 3 * height * width;
  args.height = height;
  args.width = width;
  args.table = table.data();
  args.top = args.left = 2;
  args.y = y.view;
  mjp::cpu::Prepare(args, 0, frames, nullptr);
  y.ForEach([&](float& v, int n, int h, int w, int c) {
    EXPECT_EQ(v, table[c * 256 + rgb[((n * height + h + 2) * width + w + 2) * 3 + c]]);
  });
  EXPECT_TRUE(y.Intact());
}

TEST(ResizeTest, WeightsAreATriangle) {
  // halving: a triangle of width 4 around the middle of each pair
  const ResizeTaps half = mjp::cpu::MakeResizeTaps(8, 4);
  for (int i = 0; i < 4; ++i) {
    const auto begin = half.weights.begin() + i * half.taps;
    EXPECT_NEAR(std::accumulate(begin, begin + half.taps, 0.0), 1, 1e-6);
  }
  EXPECT_EQ(half.first[1], 1);
  EXPECT_FLOAT_EQ(half.weights[half.taps], 0.125f);
  EXPECT_FLOAT_EQ(half.weights[half.taps + 1], 0.375f);
  EXPECT_FLOAT_EQ(half.weights[half.taps + 2], 0.375f);
  EXPECT_FLOAT_EQ(half.weights[half.taps + 3], 0.125f);
  // the same size: nothing happens
  const ResizeTaps same = mjp::cpu::MakeResizeTaps(5, 5);
  for (int i = 0; i < 5; ++i) {
    for (int k = 0; k < same.taps; ++k) {
      EXPECT_EQ(same.weights[i * same.taps + k], same.first[i] + k == i ? 1.0f : 0.0f);
    }
  }
}

TEST(PrepareTest, ResizesThenCrops) {
  const int height = 20, width = 16, to_height = 10, to_width = 12;
  const std::vector<uint8_t> rgb = Picture(1, height, width);
  const std::vector<float> table = Table();
  const ResizeTaps ty = mjp::cpu::MakeResizeTaps(height, to_height);
  const ResizeTaps tx = mjp::cpu::MakeResizeTaps(width, to_width);
  GuardedFeatures y({.batch = 1, .height = 6, .width = 8, .channels = 3});
  std::vector<float> scratch(3 * height * to_width, NAN);
  PrepareArgs args;
  args.rgb = rgb.data();
  args.frame_stride = 3 * height * width;
  args.height = height;
  args.width = width;
  args.table = table.data();
  args.resize_y = &ty;
  args.resize_x = &tx;
  args.top = args.left = 2;
  args.y = y.view;
  mjp::cpu::Prepare(args, 0, 1, scratch.data());
  // the antialiased bilinear kernel itself, in double
  const auto weight = [](int input, int output, int i, int source) {
    const double scale = double(input) / output, support = std::max(scale, 1.0);
    const auto triangle = [&](int k) {
      return std::max(0.0, 1 - std::abs(k + 0.5 - scale * (i + 0.5)) / support);
    };
    double total = 0;
    for (int k = 0; k < input; ++k) total += triangle(k);
    return triangle(source) / total;
  };
  y.ForEach([&](float& v, int, int h, int w, int c) {
    double sum = 0;
    for (int i = 0; i < height; ++i) {
      for (int j = 0; j < width; ++j) {
        sum += weight(height, to_height, h + 2, i) * weight(width, to_width, w + 2, j) *
               table[c * 256 + rgb[(i * width + j) * 3 + c]];
      }
    }
    EXPECT_NEAR(v, sum, 2e-6);
  });
}

}  // namespace
