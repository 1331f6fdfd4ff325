#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "kernels/cuda/tma_linear/tma_linear.cuh"
#include "tests/support/gpu/product_work.h"

// Norms folded into the linear layers before and after them, against LayerNorm's definition in
// double precision, by every plan.

namespace {

using mjp::Format;
using mjp::TokenActivation;
using mjp::tma_linear::kMomentChannels;
using mjp::tma_linear::LayerArgs;
using mjp::tma_linear::Plan;
using mjp::tma_linear::Plans;
using mjp_test::DeviceBuffer;

constexpr float kEpsilon = 1e-5f;

mjp::ConvShape Linear(int rows, int in_c, int out_c) {
  mjp::ConvShape s;
  s.batch = rows, s.in_c = in_c, s.out_c = out_c;
  return s;
}

// A LayerNorm and rows before it, whose mean is far from zero, with a channel that is far larger
// than the others, as trained transformers have them. Its weights are powers of two, so that rows
// times weights are stored as they are.
struct Norm {
  int rows, width;
  std::vector<float> v, weight, bias;

  Norm(int row_count, int channels, mjp_test::OperandSource& operands)
      : rows(row_count),
        width(channels),
        v(operands.Draw(size_t{1} * rows * width, 2.0f, 1.0f)),
        bias(operands.Draw(width)) {
    for (int i = 0; i < width; ++i)
      weight.push_back(std::ldexp(i % 3 == 0 ? -1.0f : 1.0f, i % 4 - 2));
    for (int r = 0; r < rows; ++r) v[size_t{1} * r * width + 5] *= 16;
  }

  double Of(int row, int channel) const {
    const float* const at = v.data() + size_t{1} * row * width;
    double mean = 0, squares = 0;
    for (int i = 0; i < width; ++i) mean += at[i];
    mean /= width;
    for (int i = 0; i < width; ++i) squares += (at[i] - mean) * (at[i] - mean);
    return (at[channel] - mean) / std::sqrt(squares / width + kEpsilon) * weight[channel] +
           bias[channel];
  }
  std::vector<float> All() const {
    std::vector<float> all;
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < width; ++c) all.push_back(static_cast<float>(Of(r, c)));
    return all;
  }
  std::vector<float> Scaled() const {
    std::vector<float> scaled = v;
    for (size_t i = 0; i < v.size(); ++i) scaled[i] *= weight[i % width];
    return scaled;
  }
};

// Mean and sum of squared differences of each 32 channels.
std::vector<float> MomentsOf(const std::vector<float>& v) {
  std::vector<float> moments;
  for (size_t at = 0; at < v.size(); at += kMomentChannels) {
    double mean = 0, squares = 0;
    for (int i = 0; i < kMomentChannels; ++i) mean += v[at + i];
    mean /= kMomentChannels;
    for (int i = 0; i < kMomentChannels; ++i) squares += (v[at + i] - mean) * (v[at + i] - mean);
    moments.push_back(static_cast<float>(mean));
    moments.push_back(static_cast<float>(squares));
  }
  return moments;
}

// What `plan` makes of it; poisoned where nobody wrote.
std::vector<uint8_t> Made(Format format, const LayerArgs& a, const Plan& plan,
                          const DeviceBuffer& y) {
  mjp::CheckCuda(cudaMemset(y.data(), 0xff, y.bytes()), "cudaMemset");
  mjp::tma_linear::LaunchPlan(format, a, plan, nullptr);
  mjp::CheckCuda(cudaDeviceSynchronize(), "linear layer");
  return y.Download();
}

// A layer that reads norm.v by way of its moments: `work` is the layer of the norm itself.
struct NormedLayer {
  Norm norm;
  mjp_test::ProductWork work;
  DeviceBuffer x, moments, weight_sums, bias;

  NormedLayer(int rows, int width, int out_c, const mjp_test::ProductTerms& terms, Format format,
              mjp_test::OperandSource& operands)
      : norm(rows, width, operands),
        work(Linear(rows, width, out_c), terms, format, operands),
        x(mjp_test::Stored(format, norm.Scaled())),
        moments(MomentsOf(norm.v)),
        weight_sums(Folded(norm.weight, false)),
        bias(Folded(norm.bias, terms.bias)) {
    work.x = norm.All();
  }

  std::vector<float> Folded(const std::vector<float>& of_norm, bool with_bias) const {
    std::vector<float> folded;
    for (int o = 0; o < work.s.out_c; ++o) {
      double sum = with_bias ? work.bias[o] : 0;
      for (int i = 0; i < norm.width; ++i)
        sum += double{work.w[size_t{1} * o * norm.width + i]} * of_norm[i];
      folded.push_back(static_cast<float>(sum));
    }
    return folded;
  }
  LayerArgs Arguments() const {
    LayerArgs a = {work.Arguments(), {}, {}};
    a.conv.x = x.data(), a.conv.bias = bias.as<float>();
    a.norm = {moments.as<float2>(), weight_sums.as<float>(), kEpsilon};
    return a;
  }
};

class TmaLinearNormGpu : public mjp_test::WgmmaTest {};

TEST_P(TmaLinearNormGpu, ALayerReadsANormByItsMoments) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 21);
  struct Case {
    int rows, width, out_c;
    mjp_test::ProductTerms terms;
  };
  const Case cases[] = {
      {394, 768, 2304, {}},
      {394, 768, 192, {true, false, false, 0, TokenActivation::kQuickGelu}},
      {302, 512, 1536, {false, false, false, 302}},
      {302, 512, 640, {true, false, false, 0, TokenActivation::kRelu}},
      {100, 192, 64, {true, false, false, 0, TokenActivation::kGeluErf}},
      {33, 64, 64, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.width << " to " << c.out_c);
    const NormedLayer layer(c.rows, c.width, c.out_c, c.terms, format, operands);
    const LayerArgs a = layer.Arguments();
    std::map<int, std::vector<uint8_t>> of_split;
    for (const Plan& plan : Plans(a.conv)) {
      SCOPED_TRACE(testing::Message() << plan.channels << " channels, split " << plan.split);
      const auto y = Made(format, a, plan, layer.work.dy);
      const auto [same, is_first] = of_split.emplace(plan.split, y);
      if (is_first) {
        ASSERT_NO_FATAL_FAILURE(layer.work.ExpectDefinition(format, y));
      }
      ASSERT_TRUE(same->second == y);
    }
  }
}

// A layer that adds to the stream, which is `of_stream`.v, or its norm.
struct StreamLayer {
  Norm of_stream, next;
  mjp_test::ProductWork work;
  DeviceBuffer x, moments, weight, bias, next_weight, sum, next_moments;
  bool normed;
  int x_rows;

  StreamLayer(int rows, int in_c, int width, bool is_normed, int from_rows, Format format,
              mjp_test::OperandSource& operands)
      : of_stream(from_rows > 0 ? from_rows : rows, width, operands),
        next(1, width, operands),
        work(Linear(rows, in_c, width), {}, format, operands),
        x(of_stream.v),
        moments(MomentsOf(of_stream.v)),
        weight(of_stream.weight),
        bias(of_stream.bias),
        next_weight(next.weight),
        sum(size_t{4} * rows * width),
        next_moments(size_t{8} * rows * width / kMomentChannels),
        normed(is_normed),
        x_rows(from_rows) {}

  LayerArgs Arguments() const {
    LayerArgs a = {work.Arguments(), {}, {}};
    a.stream.x = x.as<float>(), a.stream.x_rows = x_rows;
    if (normed) {
      a.stream.moments = moments.as<float2>();
      a.stream.weight = weight.as<float>(), a.stream.bias = bias.as<float>();
    }
    a.stream.epsilon = kEpsilon;
    a.stream.sum = sum.as<float>();
    a.stream.next_weight = next_weight.as<float>();
    a.stream.next_moments = next_moments.as<float2>();
    return a;
  }

  void ExpectDefinition(Format format, const std::vector<uint8_t>& y) const {
    const std::vector<float> added = mjp_test::Floats(Format::kFp32, sum.Download());
    const std::vector<float> stored = mjp_test::Floats(format, y);
    const std::vector<float> before = normed ? of_stream.All() : of_stream.v;
    const int width = work.s.out_c;
    for (size_t i = 0; i < added.size(); ++i) {
      ASSERT_TRUE(std::isfinite(added[i])) << "element " << i;
      const size_t row = i / width, column = i % width;
      // the product by y, since it is a sum of the operands alone
      ASSERT_EQ(stored[i], mjp_test::Operand(format, added[i] * next.weight[column]));
      if (i % 37 != 0) continue;
      const size_t x_row = x_rows > 0 ? row % x_rows : row;
      const double expected = before[x_row * width + column] + work.Expected(i);
      ASSERT_NEAR(added[i], expected, 1e-4 * (1 + std::abs(expected))) << "element " << i;
    }
    const std::vector<float> left = mjp_test::Floats(Format::kFp32, next_moments.Download());
    const std::vector<float> moments_of_sum = MomentsOf(added);
    ASSERT_EQ(left.size(), moments_of_sum.size());
    for (size_t i = 0; i < left.size(); ++i)
      ASSERT_NEAR(left[i], moments_of_sum[i], 1e-5 * (1 + std::abs(moments_of_sum[i])));
  }
};

TEST_P(TmaLinearNormGpu, ALayerAddsToTheStreamAndLeavesItsMoments) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 22);
  struct Case {
    const char* name;
    int rows, in_c, width;
    bool normed;
    int x_rows;
  };
  const Case cases[] = {
      {"norms before", 394, 768, 768, false, 0},
      {"a long k", 394, 3072, 768, false, 0},
      {"norms after", 302, 512, 512, true, 0},
      {"a long k, norms after", 302, 3200, 512, true, 0},
      {"shared rows", 200, 512, 512, false, 100},
      {"one slice", 33, 64, 64, true, 0},
      {"channels in 96s", 130, 64, 192, true, 65},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const StreamLayer layer(c.rows, c.in_c, c.width, c.normed, c.x_rows, format, operands);
    const LayerArgs a = layer.Arguments();
    std::map<int, std::vector<uint8_t>> of_split, moments_of_split;
    for (const Plan& plan : Plans(a.conv, true)) {
      SCOPED_TRACE(testing::Message() << plan.channels << " channels, split " << plan.split);
      mjp::CheckCuda(cudaMemset(layer.sum.data(), 0xff, layer.sum.bytes()), "cudaMemset");
      const auto y = Made(format, a, plan, layer.work.dy);
      const auto [same, is_first] = of_split.emplace(plan.split, y);
      const auto left = layer.next_moments.Download();
      const auto [same_moments, _] = moments_of_split.emplace(plan.split, left);
      if (is_first) {
        ASSERT_NO_FATAL_FAILURE(layer.ExpectDefinition(format, y));
      }
      ASSERT_TRUE(same->second == y);
      ASSERT_TRUE(same_moments->second == left);
    }
  }
}

// In place, by launches that each start before the one before ends, as a transformer has them; and
// with NaN in a token, which stays that token's alone.
TEST_P(TmaLinearNormGpu, ARowOfLayersInPlace) {
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 23);
  constexpr int kRows = 302, kWidth = 512, kLayers = 12, kNan = 77;
  const StreamLayer layer(kRows, kWidth, kWidth, true, 0, format, operands);
  const NormedLayer reader(kRows, kWidth, kWidth, {}, format, operands);
  const auto run = [&](const Plan& plan, bool waits, const std::vector<float>& x) {
    const DeviceBuffer stream(x), scaled(layer.work.dy.bytes());
    const DeviceBuffer moments[] = {DeviceBuffer(MomentsOf(x)),
                                    DeviceBuffer(layer.next_moments.bytes())};
    for (int i = 0; i < kLayers; ++i) {
      LayerArgs a = layer.Arguments(), b = reader.Arguments();
      a.stream.x = a.stream.sum = stream.as<float>();
      a.stream.moments = moments[i % 2].as<float2>();
      a.stream.next_moments = moments[(i + 1) % 2].as<float2>();
      if (i > 0) a.conv.x = reader.work.dy.data();
      a.conv.y = scaled.data();
      b.conv.x = scaled.data();
      b.norm.moments = a.stream.next_moments;
      mjp::tma_linear::LaunchPlan(format, a, plan, nullptr);
      if (waits) mjp::CheckCuda(cudaDeviceSynchronize(), "a layer");
      mjp::tma_linear::Launch(format, b, nullptr);
      if (waits) mjp::CheckCuda(cudaDeviceSynchronize(), "a layer");
    }
    return mjp_test::Floats(Format::kFp32, stream.Download());
  };
  std::vector<float> spoilt = layer.of_stream.v;
  spoilt[kNan * kWidth + 3] = std::nanf("");
  for (const Plan& plan : Plans(layer.Arguments().conv, true)) {
    SCOPED_TRACE(testing::Message() << plan.channels << " channels, split " << plan.split);
    const auto expected = run(plan, true, layer.of_stream.v);
    for (int i = 0; i < 5; ++i) ASSERT_EQ(run(plan, false, layer.of_stream.v), expected);
    const auto with_nan = run(plan, false, spoilt);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(std::isfinite(expected[i]));
      if (i / kWidth == kNan) {
        ASSERT_TRUE(std::isnan(with_nan[i]));
      } else {
        ASSERT_EQ(with_nan[i], expected[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, TmaLinearNormGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
