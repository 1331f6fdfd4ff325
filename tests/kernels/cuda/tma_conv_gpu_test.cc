#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/tma_conv/tma_conv.cuh"
#include "kernels/reference/token_activation_reference.h"
#include "tests/support/gpu/device_buffer.h"
#include "tests/support/gpu/expect_definition.h"

// The convolution by TMA against its definition in double precision, also where other kernels would
// be faster.

namespace {

using mjp::ConvArgs;
using mjp::ConvShape;
using mjp::Format;

constexpr double kNoTime = 1e9;  // of another kernel

struct Case {
  const char* name;
  int batch, height, width, in_c, out_c, kernel_h, kernel_w;
  bool bias = true, residual = false, relu = false;
  int row_period = 0;
  mjp::TokenActivation activation = mjp::TokenActivation::kNone;
};

const Case kCases[] = {
    {"3x3 to 64 channels", 3, 25, 41, 64, 64, 3, 3, true, true, true},
    {"3x3 to 64 channels without bias", 1, 60, 80, 64, 64, 3, 3, false, false, true},
    {"3x3, an odd number of tiles", 3, 9, 9, 128, 192, 3, 3, true, true, false},
    {"3x3 to 128 channels", 5, 15, 20, 192, 128, 3, 3, true, true, true},
    {"3x3, more tiles than multiprocessors", 40, 12, 40, 64, 256, 3, 3, true, true, true},
    {"5x5", 2, 13, 19, 64, 64, 5, 5, true, true, false},
    {"one dimension of five", 70, 1, 16, 128, 256, 1, 5, true, false, false},
    {"1x1", 4, 33, 21, 128, 192, 1, 1, true, true, true},
    {"tokens", 1000, 1, 1, 512, 384, 1, 1},
    {"tokens to 64 channels", 700, 1, 1, 64, 64, 1, 1},
    {"tokens of a hundred stages", 260, 1, 1, 6400, 128, 1, 1},
    {"tokens with ReLU", 300, 1, 1, 128, 128, 1, 1, true, false, false, 0,
     mjp::TokenActivation::kRelu},
    {"sequences with a bias for each position", 37 * 43, 1, 1, 128, 256, 1, 1, true, false, false,
     43},
    {"one sequence", 100, 1, 1, 64, 128, 1, 1, false, false, false, 100},
};

ConvShape ShapeOf(const Case& c) {
  ConvShape s;
  s.batch = c.batch, s.in_c = c.in_c, s.out_c = c.out_c;
  s.in_h = s.out_h = c.height, s.in_w = s.out_w = c.width;
  s.kernel_h = c.kernel_h, s.kernel_w = c.kernel_w;
  s.pad_h = c.kernel_h / 2, s.pad_w = c.kernel_w / 2;
  return s;
}

// Everything that a case needs, on the host and on the device.
struct Work {
  ConvShape s;
  std::vector<float> w, x, bias, residual, row_bias;
  mjp_test::DeviceBuffer dw, dx, db, dr, drow, dy;

  Work(const Case& c, Format format, mjp_test::OperandSource& operands)
      : s(ShapeOf(c)),
        w(operands.Draw(static_cast<size_t>(s.out_c) * s.K(), 0.0f,
                        1.0f / std::sqrt(static_cast<float>(s.K())))),
        x(operands.Draw(static_cast<size_t>(s.Positions()) * s.in_c)),
        bias(operands.Draw(s.out_c)),
        residual(operands.Draw(static_cast<size_t>(s.Positions()) * s.out_c)),
        row_bias(operands.Draw(static_cast<size_t>(std::max(c.row_period, 1)) * s.out_c)),
        dw(mjp::PackConvWeights(format, s, w.data(), s.in_c)),
        dx(mjp_test::Stored(format, x)),
        db(bias),
        dr(mjp_test::Stored(format, residual)),
        drow(row_bias),
        dy(residual.size() * mjp::FormatBytes(format)) {}

  ConvArgs Arguments(const Case& c) const {
    ConvArgs a;
    a.shape = s;
    a.x = dx.data(), a.weight = dw.data();
    a.bias = c.bias ? db.as<float>() : nullptr;
    a.residual = c.residual ? dr.data() : nullptr;
    a.row_bias = c.row_period > 0 ? drow.as<float>() : nullptr;
    a.row_period = std::max(c.row_period, 1);
    a.activation = c.activation, a.relu = c.relu, a.y = dy.data();
    return a;
  }

  // The definition, of one value.
  double Expected(const Case& c, size_t position, int o) const {
    const int ox = static_cast<int>(position % s.out_w);
    const int oy = static_cast<int>(position / s.out_w % s.out_h);
    const size_t b = position / s.out_w / s.out_h;
    double sum = c.bias ? bias[o] : 0;
    for (int ky = 0; ky < s.kernel_h; ++ky) {
      for (int kx = 0; kx < s.kernel_w; ++kx) {
        const int y = oy + ky - s.pad_h, xx = ox + kx - s.pad_w;
        if (y < 0 || y >= s.in_h || xx < 0 || xx >= s.in_w) continue;
        for (int i = 0; i < s.in_c; ++i)
          sum +=
              double{
                  w[((static_cast<size_t>(o) * s.in_c + i) * s.kernel_h + ky) * s.kernel_w + kx]} *
              x[((b * s.in_h + y) * s.in_w + xx) * s.in_c + i];
      }
    }
    if (c.row_period > 0) sum += row_bias[position % c.row_period * s.out_c + o];
    sum = mjp::reference::Activate(c.activation, sum);
    if (c.residual) sum += residual[position * s.out_c + o];
    return c.relu ? std::max(sum, 0.0) : sum;
  }
};

class TmaConvGpu : public testing::TestWithParam<Format> {
 protected:
  void SetUp() override {
    DEVICE_OR_SKIP();
    if (!mjp::GpuTraits::Current().Wgmma()) GTEST_SKIP() << "no code or GPU of 9.0a";
  }
};

TEST_P(TmaConvGpu, AgreesWithTheDefinition) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 5);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Work work(c, format, operands);
    const ConvArgs a = work.Arguments(c);
    ASSERT_TRUE(mjp::tma_conv::Supports(format, a, kNoTime));
    mjp::tma_conv::Launch(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), c.name);
    const auto y = mjp_test::Floats(format, work.dy.Download());
    mjp_test::ExpectDefinition(format, y, [&](size_t index) {
      return work.Expected(c, index / work.s.out_c, static_cast<int>(index % work.s.out_c));
    });
    if (HasFatalFailure()) return;
  }
}

// A map's bits do not depend on the maps of its batch, nor on NaNs in them.
TEST_P(TmaConvGpu, NeighboursDoNotMatter) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 6);
  const Case c = {"3x3", 3, 25, 30, 64, 128, 3, 3, true, true, true};
  Work work(c, format, operands);
  ConvArgs a = work.Arguments(c);
  mjp::tma_conv::Launch(format, a, nullptr);
  const auto together = work.dy.Download();
  auto x = work.x;
  const size_t map = x.size() / c.batch;
  std::fill_n(x.begin(), map, std::nanf(""));
  const mjp_test::DeviceBuffer spoilt(mjp_test::Stored(format, x));
  a.x = spoilt.data();
  mjp::tma_conv::Launch(format, a, nullptr);
  const auto next_to_nan = work.dy.Download();
  const size_t y_map = together.size() / c.batch;
  EXPECT_TRUE(std::equal(together.begin() + y_map, together.end(), next_to_nan.begin() + y_map));
  a.x = work.dx.data(), a.shape.batch = 1;
  mjp::tma_conv::Launch(format, a, nullptr);
  const auto alone = work.dy.Download();
  EXPECT_TRUE(std::equal(alone.begin(), alone.begin() + y_map, together.begin()));
}

INSTANTIATE_TEST_SUITE_P(Formats, TmaConvGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
