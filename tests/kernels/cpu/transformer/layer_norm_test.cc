#include "kernels/cpu/transformer/layer_norm.h"

#include <gtest/gtest.h>

#include "kernels/reference/layer_norm_reference.h"
#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp::cpu::LayerNormArgs;
using mjp::cpu::ResidualArgs;
using mjp_test::CheckClose;
using mjp_test::GuardedFeatures;
using mjp_test::RandomFloats;

struct Case {
  int sequences, rows, width;  // rows of a sequence
  bool affine, modulated;
};

const Case kCases[] = {
    {1, 1, 16, false, false}, {2, 7, 512, true, false},  {3, 16, 128, false, true},
    {2, 5, 77, true, true},   {1, 3, 1024, false, true}, {1, 4, 3, true, false},
};

// Token rows between guards: (1, 1, rows, width).
GuardedFeatures Rows(int rows, int width) {
  return GuardedFeatures({.batch = 1, .width = rows, .channels = width, .pitch = width + 6}, 3);
}

// Row-major values; GuardedFeatures has channels first.
void Set(GuardedFeatures& rows, const std::vector<float>& values) {
  const int width = rows.view.channels;
  rows.ForEach([&](float& v, int, int, int r, int c) { v = values[size_t{1} * r * width + c]; });
}
std::vector<float> Get(GuardedFeatures& rows) {
  std::vector<float> values(size_t{1} * rows.view.width * rows.view.channels);
  const int width = rows.view.channels;
  rows.ForEach([&](float& v, int, int, int r, int c) { values[size_t{1} * r * width + c] = v; });
  return values;
}

class LayerNormTest : public testing::TestWithParam<Case> {};

TEST_P(LayerNormTest, AgreesWithDouble) {
  const Case& p = GetParam();
  const int rows = p.sequences * p.rows;
  std::vector<float> values = RandomFloats(size_t{1} * rows * p.width, 1);
  for (float& v : values) v = 3.0f * v + 0.7f;
  const std::vector<float> weight = RandomFloats(p.width, 2), bias = RandomFloats(p.width, 3);
  const std::vector<float> scale = RandomFloats(size_t{1} * p.sequences * p.width, 4);
  const std::vector<float> shift = RandomFloats(size_t{1} * p.sequences * p.width, 5);
  GuardedFeatures x = Rows(rows, p.width), y = Rows(rows, p.width);
  Set(x, values);
  LayerNormArgs args{.x = x.view.data, .x_pitch = x.view.pitch, .y = y.view.data};
  args.y_pitch = y.view.pitch;
  args.width = p.width;
  args.epsilon = 1e-6f;
  if (p.affine) args.weight = weight.data(), args.bias = bias.data();
  if (p.modulated) args.scale = scale.data(), args.shift = shift.data();
  args.modulation_pitch = p.width;
  args.rows_per_sequence = p.rows;
  LayerNorm(args, 0, rows);

  std::vector<double> expected = mjp::reference::LayerNorm({values.begin(), values.end()}, p.width,
                                                           1e-6, args.weight, args.bias);
  if (p.modulated) expected = mjp::reference::Modulate(expected, p.width, p.rows, scale, shift);
  const std::vector<float> whole = Get(y);
  EXPECT_TRUE(CheckClose(whole, expected, 5e-6));
  EXPECT_TRUE(y.Intact());

  // row by row and in place, the same bits
  args.y = x.view.data;
  args.y_pitch = x.view.pitch;
  for (int r = rows - 1; r >= 0; --r) LayerNorm(args, r, r + 1);
  EXPECT_EQ(Get(x), whole);
}

INSTANTIATE_TEST_SUITE_P(All, LayerNormTest, testing::ValuesIn(kCases));

TEST(LayerNormTest, LargeMeanCostsNoPrecision) {
  std::vector<float> x = RandomFloats(512, 1), y(512);
  for (float& v : x) v += 100.0f;
  const LayerNormArgs args{.x = x.data(), .y = y.data(), .width = 512};
  LayerNorm(args, 0, 1);
  EXPECT_TRUE(CheckClose(
      y, mjp::reference::LayerNorm({x.begin(), x.end()}, 512, 1e-5, nullptr, nullptr), 5e-5));
}

TEST(LayerNormTest, NotANumberIsNotLost) {
  for (const int at : {0, 31, 39}) {
    std::vector<float> x = RandomFloats(3 * 40, 1);
    x[40 + at] = NAN;
    const LayerNormArgs args{
        .x = x.data(), .x_pitch = 40, .y = x.data(), .y_pitch = 40, .width = 40};
    LayerNorm(args, 0, 3);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(x[i]), i / 40 == 1) << i;
  }
}

TEST(ResidualTest, AgreesWithDouble) {
  for (const int width : {5, 64, 131}) {
    for (const bool gated : {false, true}) {
      constexpr int kRows = 3, kSequences = 2;
      const size_t size = size_t{1} * kRows * kSequences * width;
      const std::vector<float> added = RandomFloats(size, 1), before = RandomFloats(size, 2);
      const std::vector<float> gate = RandomFloats(size_t{1} * kSequences * width, 3);
      GuardedFeatures x = Rows(kRows * kSequences, width), y = Rows(kRows * kSequences, width);
      Set(x, added);
      Set(y, before);
      ResidualArgs args{.y = y.view.data, .y_pitch = y.view.pitch, .x = x.view.data};
      args.x_pitch = x.view.pitch;
      args.width = width;
      if (gated) args.gate = gate.data();
      args.gate_pitch = width;
      args.rows_per_sequence = kRows;
      AddResidual(args, 0, kRows * kSequences);
      std::vector<double> expected;
      for (size_t i = 0; i < size; ++i) {
        const double factor = gated ? gate[i / width / kRows * width + i % width] : 1.0;
        expected.push_back(before[i] + factor * added[i]);
      }
      EXPECT_TRUE(CheckClose(Get(y), expected, 2e-7));
      EXPECT_TRUE(y.Intact());
    }
  }
}

}  // namespace
