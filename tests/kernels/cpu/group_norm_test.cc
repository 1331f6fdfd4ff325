#include "kernels/cpu/group_norm.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/cpu/mish.h"
#include "kernels/reference/group_norm_reference.h"
#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp::Activation;
using mjp::cpu::GroupNormArgs;
using mjp_test::CheckClose;
using mjp_test::GuardedFeatures;
using mjp_test::RandomFloats;

struct Case {
  int batch, height, width, channels, groups;
  Activation activation;
  bool film, film_scale, residual, residual_first;
};

const Case kCases[] = {
    {2, 1, 16, 256, 8, Activation::kMish, true, true, false, false},
    {3, 1, 4, 64, 8, Activation::kMish, true, false, true, false},
    {1, 1, 16, 8, 8, Activation::kMish, true, true, true, false},
    {2, 1, 8, 40, 4, Activation::kMish, false, false, true, false},
    {1, 1, 4, 2048, 8, Activation::kMish, true, true, false, false},
    {2, 9, 7, 64, 4, Activation::kRelu, false, false, true, true},
    {1, 5, 5, 48, 3, Activation::kNone, false, false, false, false},
    {2, 3, 3, 20, 0, Activation::kRelu, false, false, true, true},
};

// (batch, channels, positions) -> (batch, positions, channels), and values around an offset
std::vector<double> PositionsFirst(const std::vector<float>& x, int batch, int channels) {
  const int positions = static_cast<int>(x.size()) / batch / channels;
  std::vector<double> y(x.size());
  for (int n = 0; n < batch; ++n) {
    for (int c = 0; c < channels; ++c) {
      for (int l = 0; l < positions; ++l) {
        y[(size_t{1} * n * positions + l) * channels + c] =
            x[(size_t{1} * n * channels + c) * positions + l];
      }
    }
  }
  return y;
}

class GroupNormTest : public testing::TestWithParam<Case> {};

TEST_P(GroupNormTest, AgreesWithDouble) {
  const Case& p = GetParam();
  const int positions = p.height * p.width, steps = 4, environments = 2;
  const mjp::cpu::Features shape{.batch = p.batch,
                                 .height = p.height,
                                 .width = p.width,
                                 .channels = p.channels,
                                 .pitch = p.channels + 5,
                                 .halo_y = 1,
                                 .halo_x = 2};
  const size_t size = size_t{1} * p.batch * positions * p.channels;
  std::vector<float> x = RandomFloats(size, 1);
  for (float& v : x) v = 3.0f * v + 0.7f;
  const std::vector<float> residual = RandomFloats(size, 2);
  const std::vector<float> weight = RandomFloats(p.channels, 3), bias = RandomFloats(p.channels, 4);
  const int width = 2 * p.channels + 3;
  const std::vector<float> table = RandomFloats(steps * width, 5);
  const std::vector<float> cond = RandomFloats(environments * width, 6);
  const std::vector<int> step = {3, 0, 2}, row = {1, 0, 1};

  GuardedFeatures y(shape, 2), other(shape, 3);
  y.Set(x);
  other.Set(residual);
  GroupNormArgs args;
  args.y = y.view;
  args.groups = p.groups;
  args.weight = weight.data();
  args.bias = bias.data();
  args.activation = p.activation;
  if (p.film) {
    args.film = {.step_table = table.data() + 3,
                 .cond = cond.data() + 3,
                 .step = step.data(),
                 .row = row.data(),
                 .pitch = width,
                 .bias_offset = p.film_scale ? p.channels : 0};
  }
  if (p.residual) args.residual = other.view;
  args.residual_first = p.residual_first;
  Normalize(args, WholeBlock(y.view));

  std::vector<double> expected = PositionsFirst(x, p.batch, p.channels);
  if (p.groups > 0) {
    expected = mjp::reference::GroupNorm(expected, p.batch, positions, p.channels, p.groups,
                                         weight.data(), bias.data());
  }
  const std::vector<double> added = PositionsFirst(residual, p.batch, p.channels);
  for (size_t i = 0; i < size; ++i) {
    const size_t c = i % p.channels, n = i / p.channels / positions;
    double v = expected[i];
    if (p.residual && p.residual_first) v += added[i];
    v = mjp::reference::Activate(p.activation, v);
    if (p.film) {
      const float* t = table.data() + step[n] * width + 3 + c;
      const float* o = cond.data() + row[n] * width + 3 + c;
      const int shift = p.film_scale ? p.channels : 0;
      if (p.film_scale) v *= double{t[0]} + o[0];
      v += double{t[shift]} + o[shift];
    }
    if (p.residual && !p.residual_first) v += added[i];
    expected[i] = v;
  }
  EXPECT_TRUE(CheckClose(PositionsFirst(y.Get(), p.batch, p.channels), expected, 5e-6));
  EXPECT_TRUE(y.Intact());
}

INSTANTIATE_TEST_SUITE_P(All, GroupNormTest, testing::ValuesIn(kCases));

TEST(GroupNormTest, LargeMeanCostsNoPrecision) {
  GuardedFeatures y({.batch = 1, .width = 16, .channels = 32});
  std::vector<float> x = RandomFloats(16 * 32, 1);
  for (float& v : x) v += 100.0f;
  y.Set(x);
  const std::vector<float> weight(32, 1.0f), bias(32, 0.0f);
  GroupNormArgs args;
  args.y = y.view;
  args.groups = 4;
  args.weight = weight.data();
  args.bias = bias.data();
  Normalize(args, WholeBlock(y.view));
  EXPECT_TRUE(CheckClose(
      PositionsFirst(y.Get(), 1, 32),
      mjp::reference::GroupNorm(PositionsFirst(x, 1, 32), 1, 16, 32, 4, weight.data(), bias.data()),
      5e-5));
}

TEST(GroupNormTest, NotANumberIsNotLost) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kMish}) {
    GuardedFeatures y({.batch = 1, .width = 4, .channels = 32});
    y.Set(RandomFloats(4 * 32, 1));
    y.view.At(0, 0, 1)[5] = NAN;
    const std::vector<float> weight(32, 1.0f), bias(32, 0.0f);
    GroupNormArgs args;
    args.y = y.view;
    args.groups = 4;
    args.weight = weight.data();
    args.bias = bias.data();
    args.activation = activation;
    Normalize(args, WholeBlock(y.view));
    y.ForEach([](float& v, int, int, int, int c) { EXPECT_EQ(std::isnan(v), c < 8); });
  }
}

TEST(MishTest, AgreesWithDoubleEverywhere) {
  std::vector<float> x, y;
  for (float v = -100; v < 100; v += 0.0173f) x.push_back(v);
  x.insert(x.end(), {0.0f, -0.0f, 1e-30f, -1e-30f, 1e4f, -1e4f, 3e38f});
  y.resize(x.size());
  mjp::cpu::Mish(x.data(), static_cast<int64_t>(x.size()), y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = mjp::reference::Activate(Activation::kMish, std::min(x[i], 500.0f)) +
                            std::max(0.0, double{x[i]} - 500.0);
    EXPECT_NEAR(y[i], expected, 1e-6 * std::abs(expected) + 1e-30) << x[i];
  }
  float nan = NAN;
  mjp::cpu::Mish(&nan, 1, &nan);
  EXPECT_TRUE(std::isnan(nan));
}

}  // namespace
