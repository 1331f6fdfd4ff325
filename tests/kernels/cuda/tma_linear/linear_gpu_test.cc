#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/cuda/conv/implicit_gemm_wgmma.cuh"
#include "kernels/cuda/tma_linear/tma_linear.cuh"
#include "tests/support/gpu/product_work.h"

// The linear layers by TMA against their definition in double precision, by every plan.

namespace {

using mjp::ConvArgs;
using mjp::Format;
using mjp::TokenActivation;
using mjp::tma_linear::Plan;
using mjp::tma_linear::Plans;

struct Case {
  const char* name;
  int rows, in_c, out_c;
  mjp_test::ProductTerms terms = {};
};

const Case kCases[] = {
    {"one slice", 33, 64, 64},
    {"fewer slices than slots", 129, 192, 192, true, true, false},
    {"a ragged tile", 394, 768, 768, true, true, false},
    {"three tiles, a bias for each position", 302, 512, 1536, true, false, false, 302},
    {"a shorter period without bias", 302, 256, 384, false, false, false, 151},
    {"channels in 64s and 128s", 302, 512, 3200, true, false, false, 0, TokenActivation::kRelu},
    {"unequal parts of k", 302, 3200, 512, true, true, true},
    {"few tokens", 100, 512, 512, false, true, true},
    {"many tokens", 1100, 128, 192},
    {"GELU by erf", 130, 512, 192, true, false, false, 0, TokenActivation::kGeluErf},
    {"GELU by tanh", 130, 512, 192, true, true, false, 0, TokenActivation::kGeluTanh},
    {"quick GELU", 394, 768, 192, true, false, false, 0, TokenActivation::kQuickGelu},
    {"SiLU", 130, 512, 192, true, false, false, 65, TokenActivation::kSilu},
};

struct Work : mjp_test::ProductWork {
  Work(const Case& c, Format format, mjp_test::OperandSource& operands)
      : ProductWork(ShapeOf(c), c.terms, format, operands) {}
  static mjp::ConvShape ShapeOf(const Case& c) {
    mjp::ConvShape s;
    s.batch = c.rows, s.in_c = c.in_c, s.out_c = c.out_c;
    return s;
  }

  // What `plan` makes of it; poisoned where nobody wrote.
  std::vector<uint8_t> Run(Format format, const ConvArgs& a, const Plan& plan) const {
    const size_t bytes = residual.size() * mjp::FormatBytes(format);
    mjp::CheckCuda(cudaMemset(dy.data(), 0xff, bytes), "cudaMemset");
    mjp::tma_linear::LaunchPlan(format, {a, {}, {}}, plan, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "linear layer");
    return dy.Download();
  }
};

testing::Message Text(const Plan& p) {
  return testing::Message() << p.channels << " channels, cluster of " << p.sharers << " x "
                            << p.split << ", " << p.slots << " slots";
}

class TmaLinearGpu : public mjp_test::WgmmaTest {};

// The bits depend on the split of k alone.
TEST_P(TmaLinearGpu, EveryPlanAgreesWithTheDefinition) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 7);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Work work(c, format, operands);
    const ConvArgs a = work.Arguments();
    ASSERT_TRUE(std::isfinite(mjp::tma_linear::Time(format, a)));
    std::map<int, std::vector<uint8_t>> of_split;
    for (const Plan& plan : Plans(a)) {
      SCOPED_TRACE(Text(plan));
      const auto y = work.Run(format, a, plan);
      const auto [same, is_first] = of_split.emplace(plan.split, y);
      if (is_first) {
        ASSERT_NO_FATAL_FAILURE(work.ExpectDefinition(format, y));
      }
      ASSERT_TRUE(same->second == y);
    }
  }
}

TEST_P(TmaLinearGpu, ChoosesOneOfThem) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 8);
  const Work work(kCases[2], format, operands);
  const ConvArgs a = work.Arguments();
  mjp::tma_linear::Launch(format, a, nullptr);
  const auto y = work.dy.Download();
  EXPECT_TRUE(y == work.Run(format, a, *mjp::tma_linear::MakePlan(a)));
  EXPECT_GT(mjp::tma_linear::Time(format, a), 0);
  EXPECT_TRUE(std::isinf(mjp::tma_linear::Time(Format::kTf32, a)));
}

// CLIP's hidden layer is this kernel's, as the bits tell: the kernel by wgmma splits k otherwise,
// or makes them alike; so the plan is asked, too.
TEST_P(TmaLinearGpu, LaunchConvTakesIt) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 12);
  const Work work({"CLIP's second layer", 394, 3072, 768}, format, operands);
  const ConvArgs a = work.Arguments();
  const auto expected = work.Run(format, a, *mjp::tma_linear::MakePlan(a));
  ASSERT_LT(mjp::tma_linear::Time(format, a), mjp::MeasuredWgmmaConvTime(a.shape));
  mjp::CheckCuda(cudaMemset(work.dy.data(), 0xff, expected.size()), "cudaMemset");
  mjp::LaunchConv(format, a, nullptr);
  EXPECT_TRUE(work.dy.Download() == expected);
}

// Values of all sizes through each activation, by weights that let them pass; NaN stays NaN.
TEST_P(TmaLinearGpu, ActivationsTakeAnyValue) {
  const Format format = GetParam();
  constexpr int kChannels = 64, kRows = 40;
  mjp::ConvShape s;
  s.batch = kRows, s.in_c = s.out_c = kChannels;
  std::vector<float> w(size_t{1} * kChannels * kChannels), x(size_t{1} * kRows * kChannels);
  for (int i = 0; i < kChannels; ++i) w[i * kChannels + i] = 1;
  constexpr float kSizes[] = {0, 1e-4f, 0.5f, 3, 8, 20, 90, 1000, 60000};
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = mjp_test::Operand(format, (i % 2 == 0 ? 1 : -1) * kSizes[i / 2 % std::size(kSizes)]);
  for (int i = 0; i < kChannels; ++i) x[i] = std::nanf("");
  const mjp_test::DeviceBuffer dw(mjp::PackConvWeights(format, s, w.data(), kChannels)),
      dx(mjp_test::Stored(format, x)), dy(x.size() * mjp::FormatBytes(format));
  for (const TokenActivation activation :
       {TokenActivation::kNone, TokenActivation::kRelu, TokenActivation::kGeluErf,
        TokenActivation::kGeluTanh, TokenActivation::kQuickGelu, TokenActivation::kSilu}) {
    SCOPED_TRACE(static_cast<int>(activation));
    ConvArgs a;
    a.shape = s, a.x = dx.data(), a.weight = dw.data(), a.y = dy.data(), a.activation = activation;
    mjp::tma_linear::Launch(format, a, nullptr);
    const auto y = mjp_test::Floats(format, dy.Download());
    for (size_t i = 0; i < y.size(); ++i) {
      if (i < kChannels) {
        ASSERT_TRUE(std::isnan(y[i])) << "element " << i;
        continue;
      }
      const double expected = mjp::reference::Activate(activation, x[i]);
      ASSERT_NEAR(y[i], expected,
                  (format == Format::kFp16 ? 6e-4 : 5e-3) * std::abs(expected) + 2e-6)
          << "of " << x[i];
    }
  }
}

// A token's bits do not depend on the other tokens, nor on NaNs in them.
TEST_P(TmaLinearGpu, NeighboursDoNotMatter) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 9);
  const Work work({"neighbours", 300, 1024, 192, true, true, false}, format, operands);
  auto x = work.x;
  constexpr int kSpoilt = 100, kAlone = 150;
  const size_t row_bytes = work.s.out_c * mjp::FormatBytes(format);
  std::fill_n(x.begin(), size_t{kSpoilt} * work.s.in_c, std::nanf(""));
  const mjp_test::DeviceBuffer spoilt(mjp_test::Stored(format, x));
  ConvArgs a = work.Arguments(), next_to_nan = a, alone = a;
  next_to_nan.x = spoilt.data();
  alone.shape.batch = kAlone;
  for (const Plan& plan : Plans(a)) {
    SCOPED_TRACE(Text(plan));
    const auto together = work.Run(format, a, plan);
    const auto with_nan = work.Run(format, next_to_nan, plan);
    const size_t first = kSpoilt * row_bytes;
    ASSERT_TRUE(std::equal(together.begin() + first, together.end(), with_nan.begin() + first));
    for (const Plan& other : Plans(alone)) {
      if (other.split != plan.split || other.channels != plan.channels) continue;
      const auto y = work.Run(format, alone, other);
      ASSERT_TRUE(std::equal(y.begin(), y.begin() + kAlone * row_bytes, together.begin()));
      break;
    }
  }
}

// Launches that each read what the one before wrote, and start before it ends.
TEST_P(TmaLinearGpu, ManyInARowGiveTheSameBits) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 10);
  const Work work({"a row of layers", 394, 768, 768, true, false, false}, format, operands);
  const mjp_test::DeviceBuffer other(mjp_test::Stored(format, work.residual));
  constexpr int kLayers = 40, kTimes = 5;
  for (const Plan& plan : Plans(work.Arguments())) {
    SCOPED_TRACE(Text(plan));
    const auto run = [&](bool waits) {
      ConvArgs a = work.Arguments();
      for (int i = 0; i < kLayers; ++i) {
        a.y = i % 2 == 0 ? other.data() : work.dy.data();
        mjp::tma_linear::LaunchPlan(format, {a, {}, {}}, plan, nullptr);
        if (waits) mjp::CheckCuda(cudaDeviceSynchronize(), "a layer");
        a.x = a.y;
      }
      return work.dy.Download();
    };
    const auto expected = run(true);
    for (int i = 0; i < kTimes; ++i) ASSERT_TRUE(run(false) == expected) << "time " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, TmaLinearGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
