#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/reference/group_norm_reference.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Activation;
using mjp::Format;

struct Case {
  const char* name;
  int rows, positions, channels, groups;
  Activation activation;
  bool film, residual, residual_first;
};

const Case kCases[] = {
    {"U-Net with FiLM", 3, 16, 256, 8, Activation::kMish, true, false, false},
    {"U-Net with residual", 3, 4, 1024, 8, Activation::kMish, false, true, false},
    {"wide rows", 301, 16, 256, 8, Activation::kMish, true, false, false},
    {"groups of 24", 5, 12, 192, 8, Activation::kMish, true, true, false},
    {"one channel in a group", 2, 16, 8, 8, Activation::kMish, true, false, false},
    {"four groups", 2, 64, 32, 4, Activation::kMish, false, true, false},
    {"stem", 2, 48 * 48, 64, 4, Activation::kRelu, false, false, false},
    {"residual before ReLU", 2, 36, 128, 8, Activation::kRelu, false, true, true},
    {"nothing after", 2, 9, 512, 32, Activation::kNone, false, false, false},
};

class GroupNormGpu : public testing::TestWithParam<Format> {};

TEST_P(GroupNormGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 11);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const size_t n = static_cast<size_t>(c.rows) * c.positions * c.channels;
    // a mean far from zero, where a one-pass variance would cancel
    const auto x = operands.Draw(n, 8.0f), residual = operands.Draw(n, 0.0f);
    const auto weight = operands.Draw(c.channels, 1.0f), bias = operands.Draw(c.channels, 0.0f);
    const int width = 2 * c.channels;
    const auto table = operands.Draw(5 * static_cast<size_t>(width), 0.5f);
    const auto cond = operands.Draw(static_cast<size_t>(c.rows) * width, 0.5f);
    std::vector<int> row_step(c.rows);
    for (int r = 0; r < c.rows; ++r) row_step[r] = (2 * r + 1) % 5;

    const mjp_test::DeviceBuffer dx(mjp_test::Stored(format, x)),
        dr(mjp_test::Stored(format, residual)), dy(n * mjp::FormatBytes(format)), dw(weight),
        db(bias), dt(table), dc(cond), ds(row_step);

    mjp::GroupNormArgs a;
    a.rows = c.rows, a.positions = c.positions, a.channels = c.channels, a.groups = c.groups;
    a.x = dx.data(), a.y = dy.data();
    a.weight = dw.as<float>(), a.bias = db.as<float>(), a.activation = c.activation;
    if (c.film) a.film = {dt.as<float>(), dc.as<float>(), ds.as<int>(), 1, width, 0, c.channels};
    if (c.residual) a.residual = dr.data();
    a.residual_first = c.residual_first;
    mjp::LaunchGroupNorm(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), c.name);
    const auto y = mjp_test::Floats(format, dy.Download());

    const auto normalised =
        mjp::reference::GroupNorm({x.begin(), x.end()}, c.rows, c.positions, c.channels, c.groups,
                                  weight.data(), bias.data());
    for (size_t i = 0; i < n; ++i) {
      const size_t channel = i % c.channels, r = i / c.channels / c.positions;
      double v = normalised[i];
      if (c.residual && c.residual_first) v += residual[i];
      v = mjp::reference::Activate(c.activation, v);
      const auto film = [&](size_t k) {
        return static_cast<double>(table[row_step[r] * width + k]) + cond[r * width + k];
      };
      double magnitude = std::abs(v);  // of the terms, which may cancel
      if (c.film) {
        magnitude += std::abs(v * film(channel)) + std::abs(film(c.channels + channel));
        v = v * film(channel) + film(c.channels + channel);
      }
      if (c.residual && !c.residual_first) v += residual[i];
      ASSERT_NEAR(y[i], v, mjp_test::NormTolerance(format) * (1 + magnitude + std::abs(v)))
          << "element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, GroupNormGpu,
                         testing::Values(Format::kFp32, Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
