#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/tma_conv/tma_conv.cuh"
#include "tests/support/gpu/product_work.h"

// The convolution by TMA against its definition in double precision, also where other kernels would
// be faster.

namespace {

using mjp::ConvArgs;
using mjp::ConvShape;
using mjp::Format;

struct Case {
  const char* name;
  int batch, height, width, in_c, out_c, kernel_h, kernel_w;
  mjp_test::ProductTerms terms = {};
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

class TmaConvGpu : public mjp_test::WgmmaTest {};

TEST_P(TmaConvGpu, AgreesWithTheDefinition) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 5);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const mjp_test::ProductWork work(ShapeOf(c), c.terms, format, operands);
    const ConvArgs a = work.Arguments();
    ASSERT_TRUE(std::isfinite(mjp::tma_conv::Time(format, a)));
    mjp::tma_conv::Launch(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), c.name);
    ASSERT_NO_FATAL_FAILURE(work.ExpectDefinition(format, work.dy.Download()));
  }
}

// A map's bits do not depend on the maps of its batch, nor on NaNs in them.
TEST_P(TmaConvGpu, NeighboursDoNotMatter) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 6);
  const Case c = {"3x3", 3, 25, 30, 64, 128, 3, 3, true, true, true};
  const mjp_test::ProductWork work(ShapeOf(c), c.terms, format, operands);
  ConvArgs a = work.Arguments();
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
