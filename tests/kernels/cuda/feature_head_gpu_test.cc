#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/conv/feature_head.cuh"
#include "tests/support/gpu/device_buffer.h"

// The head of an encoder against its definition in double precision, in which the dense layer's
// input is rounded to storage as the kernel rounds it.

namespace {

using mjp::Format;
using mjp_test::DeviceBuffer;

struct Case {
  const char* name;
  int pictures, height, width, in_c, pool_c, features;
  bool keypoints, bias, relu;
};
const Case kCases[] = {
    {"ResNet-18's keypoints", 2, 3, 3, 512, 32, 64, true, true, true},
    {"the shipped one's flatten", 3, 6, 6, 64, 32, 64, false, true, true},
    {"one cell, few channels", 1, 1, 1, 16, 16, 5, true, false, false},
    {"all cells, uneven parts", 2, 6, 8, 48, 16, 37, false, false, true},
    {"keypoints of many cells", 4, 5, 9, 208, 32, 130, true, true, false},
};

struct Operands {
  std::vector<float> x, pool, pool_bias, grid, dense, dense_bias;

  Operands(Format format, const Case& c) {
    const int cells = c.height * c.width, flat = c.pool_c * (c.keypoints ? 2 : cells);
    mjp_test::OperandSource stored(format, 31), numbers(Format::kFp32, 32);
    x = stored.Draw(size_t{1} * c.pictures * cells * c.in_c, 0.5f, 1.0f);
    pool = stored.Draw(size_t{1} * c.pool_c * c.in_c, 0.0f, 1 / std::sqrt(float(c.in_c)));
    dense = stored.Draw(size_t{1} * c.features * flat, 0.0f, 1 / std::sqrt(float(flat)));
    pool_bias = numbers.Draw(c.pool_c), dense_bias = numbers.Draw(c.features);
    grid = numbers.Draw(2 * cells);
  }
};

// The dense layer's input of a picture.
std::vector<double> Values(Format format, const Case& c, const Operands& o, int picture) {
  const int cells = c.height * c.width;
  std::vector<double> sums;  // (cell, channel)
  for (int cell = 0; cell < cells; ++cell)
    for (int m = 0; m < c.pool_c; ++m) {
      double sum = c.bias ? o.pool_bias[m] : 0;
      for (int k = 0; k < c.in_c; ++k)
        sum += double{o.x[(size_t{1} * picture * cells + cell) * c.in_c + k]} *
               o.pool[size_t{1} * m * c.in_c + k];
      sums.push_back(sum);
    }
  std::vector<double> values;
  const auto add = [&](double v) {
    values.push_back(mjp_test::Operand(format, static_cast<float>(v)));
  };
  if (!c.keypoints) {
    for (const double v : sums) add(std::max(v, 0.0));
    return values;
  }
  for (int m = 0; m < c.pool_c; ++m) {
    double all = 0, x = 0, y = 0;
    for (int cell = 0; cell < cells; ++cell) {
      const double weight = std::exp(sums[cell * c.pool_c + m]);
      all += weight, x += weight * o.grid[2 * cell], y += weight * o.grid[2 * cell + 1];
    }
    add(x / all), add(y / all);
  }
  return values;
}

class FeatureHeadGpu : public testing::TestWithParam<Format> {};

TEST_P(FeatureHeadGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  int runs = 0;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Operands o(format, c);
    mjp::FeatureHeadArgs a;
    a.pool.shape.batch = a.dense.shape.batch = c.pictures;
    a.pool.shape.in_h = a.pool.shape.out_h = c.height;
    a.pool.shape.in_w = a.pool.shape.out_w = c.width;
    a.pool.shape.in_c = c.in_c, a.pool.shape.out_c = c.pool_c;
    a.dense.shape.in_c = c.pool_c * (c.keypoints ? 2 : c.height * c.width);
    a.dense.shape.out_c = c.features;
    const DeviceBuffer x(mjp_test::Stored(format, o.x)), grid(o.grid),
        pool(mjp::PackConvWeights(format, a.pool.shape, o.pool.data(), c.in_c)),
        dense(mjp::PackConvWeights(format, a.dense.shape, o.dense.data(), a.dense.shape.in_c)),
        pool_bias(o.pool_bias), dense_bias(o.dense_bias), y(size_t{4} * c.pictures * c.features);
    a.pool.x = x.data(), a.pool.weight = pool.data(), a.dense.weight = dense.data();
    if (c.bias) a.pool.bias = pool_bias.as<float>(), a.dense.bias = dense_bias.as<float>();
    if (c.keypoints) a.pos_grid = grid.as<float>();
    a.pool.relu = !c.keypoints, a.dense.relu = c.relu, a.dense.y = y.data();
    if (!mjp::FeatureHeadSupports(format, a)) continue;  // a GPU with less shared memory
    ++runs;
    mjp::LaunchFeatureHead(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), c.name);
    const auto out = mjp_test::Floats(Format::kFp32, y.Download());
    // a value on the edge of rounding goes either way
    const double tolerance = format == Format::kFp16 ? 2e-3 : 1.6e-2;
    for (int n = 0; n < c.pictures; ++n) {
      const std::vector<double> values = Values(format, c, o, n);
      for (int f = 0; f < c.features; ++f) {
        double expected = c.bias ? o.dense_bias[f] : 0;
        for (size_t k = 0; k < values.size(); ++k)
          expected += values[k] * o.dense[f * values.size() + k];
        if (c.relu) expected = std::max(expected, 0.0);
        ASSERT_NEAR(out[n * c.features + f], expected, tolerance * (1 + std::abs(expected)))
            << "picture " << n << ", feature " << f;
      }
    }
  }
  EXPECT_GE(runs, 3);
}

TEST(FeatureHeadGpuTest, LeavesTheRestToTheLaunches) {
  DEVICE_OR_SKIP();
  mjp::FeatureHeadArgs a;
  a.pool.shape.in_c = 64, a.pool.shape.out_c = 32, a.dense.shape.in_c = 32;
  ASSERT_TRUE(mjp::FeatureHeadSupports(Format::kFp16, a));
  EXPECT_FALSE(mjp::FeatureHeadSupports(Format::kFp32, a));
  const auto refuses = [&](const auto& change) {
    mjp::FeatureHeadArgs changed = a;
    change(changed);
    return !mjp::FeatureHeadSupports(Format::kFp16, changed);
  };
  EXPECT_TRUE(refuses([](auto& b) { b.pool.shape.batch = 10000; }));
  EXPECT_TRUE(refuses([](auto& b) { b.pool.shape.in_c = 72; }));
  EXPECT_TRUE(refuses([](auto& b) { b.pool.shape.out_c = 48, b.dense.shape.in_c = 48; }));
  EXPECT_TRUE(refuses([](auto& b) { b.pool.shape.in_h = 49, b.dense.shape.in_c = 49 * 32; }));
  EXPECT_TRUE(refuses([](auto& b) { b.dense.shape.in_c = 64; })) << "keypoints without a grid";
  EXPECT_TRUE(refuses([](auto& b) { b.dense.shape.out_c = 100000; })) << "too many weights";
}

INSTANTIATE_TEST_SUITE_P(Formats, FeatureHeadGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
