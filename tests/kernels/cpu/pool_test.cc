#include "kernels/cpu/pool.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp_test::CheckClose;
using mjp_test::GuardedFeatures;
using mjp_test::RandomFloats;

TEST(MaxPoolTest, IsTheLargestOfEachWindow) {
  for (const int size : {6, 7}) {
    const int batch = 2, channels = 5, out = (size - 1) / 2 + 1;
    GuardedFeatures x({.batch = batch,
                       .height = size,
                       .width = size,
                       .channels = channels,
                       .halo_y = 1,
                       .halo_x = 1});
    GuardedFeatures y({.batch = batch,
                       .height = out,
                       .width = out,
                       .channels = channels,
                       .halo_y = 1,
                       .halo_x = 1});
    std::vector<float> values = RandomFloats(size_t{1} * batch * channels * size * size, 1);
    for (float& v : values) v -= 2;  // all negative: the zero frame must not win
    x.Set(values);
    for (int row = 0; row < batch * out; ++row)
      mjp::cpu::MaxPool(x.view, y.view, false, row, row + 1);
    y.ForEach([&](float& v, int n, int h, int w, int c) {
      float largest = -std::numeric_limits<float>::infinity();
      for (int i = 0; i < size; ++i) {
        for (int j = 0; j < size; ++j) {
          if (std::abs(i - 2 * h) <= 1 && std::abs(j - 2 * w) <= 1) {
            largest = std::max(largest, values[((n * channels + c) * size + i) * size + j]);
          }
        }
      }
      EXPECT_EQ(v, largest);
    });
    EXPECT_TRUE(y.Intact());
  }
}

TEST(MaxPoolTest, TakesReluAlongWithTheSameBits) {
  const mjp::cpu::Features in{.batch = 1, .height = 9, .width = 8, .channels = 20},
      out{.batch = 1, .height = 5, .width = 4, .channels = 20};
  GuardedFeatures x(in), before(in), y(out), expected(out);
  std::vector<float> values = RandomFloats(9 * 8 * 20, 1), positive = values;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 7 == 0 ? -0.0f : i < 800 ? -std::abs(values[i]) : values[i];
    positive[i] = values[i] > 0 ? values[i] : 0.0f;
  }
  x.Set(values);
  before.Set(positive);
  mjp::cpu::MaxPool(x.view, y.view, true, 0, 5);
  mjp::cpu::MaxPool(before.view, expected.view, false, 0, 5);
  const std::vector<float> is = y.Get(), should = expected.Get();
  for (size_t i = 0; i < is.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(is[i]), std::bit_cast<uint32_t>(should[i])) << i;
}

TEST(AveragePoolTest, IsTheMean) {
  GuardedFeatures x({.batch = 3, .height = 3, .width = 4, .channels = 7, .halo_y = 1, .halo_x = 1});
  const std::vector<float> values = RandomFloats(3 * 7 * 12, 1);
  x.Set(values);
  std::vector<float> features(3 * 7, NAN), expected(3 * 7);
  mjp::cpu::AveragePool(x.view, features.data(), 0, 3);
  for (size_t i = 0; i < values.size(); ++i) expected[i / 12] += values[i] / 12;
  EXPECT_TRUE(CheckClose(features, expected, 1e-6));
}

TEST(SpatialSoftmaxTest, IsTheExpectationOfTheGrid) {
  const int batch = 2, height = 3, width = 4, channels = 5, cells = height * width;
  GuardedFeatures logits({.batch = batch, .height = height, .width = width, .channels = channels});
  std::vector<float> values = RandomFloats(size_t{1} * batch * channels * cells, 1);
  for (float& v : values) v = 100 * v + 1000;  // exp would overflow without the maximum
  logits.Set(values);
  const std::vector<float> grid = RandomFloats(2 * cells, 2);
  std::vector<float> keypoints(batch * channels * 2, NAN);
  std::vector<double> expected;
  mjp::cpu::SpatialSoftmax(logits.view, grid.data(), keypoints.data(), 0, batch);
  for (int row = 0; row < batch * channels; ++row) {
    double sum = 0, x = 0, y = 0;
    for (int i = 0; i < cells; ++i) {
      const double weight = std::exp(double{values[row * cells + i]} - 1000 - 100);
      sum += weight;
      x += weight * grid[2 * i];
      y += weight * grid[2 * i + 1];
    }
    expected.insert(expected.end(), {x / sum, y / sum});
  }
  EXPECT_TRUE(CheckClose(keypoints, expected, 1e-6));
}

}  // namespace
