#include "kernels/cpu/transformer/attention.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/cpu/transformer/rotary.h"
#include "kernels/cpu/transformer/softmax.h"
#include "kernels/reference/attention_reference.h"
#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp::cpu::AttentionArgs;
using mjp_test::CheckClose;
using mjp_test::GuardedFeatures;
using mjp_test::RandomFloats;

struct Case {
  std::string name;
  int sequences, heads, head_size, queries, keys;
  bool causal;
};

const Case kCases[] = {
    {"dit", 2, 8, 64, 32, 32, false},        {"vision", 1, 12, 64, 197, 197, false},
    {"text", 1, 8, 64, 77, 77, true},        {"cross", 2, 4, 32, 20, 302, false},
    {"one_query", 3, 2, 64, 1, 50, false},   {"head_16", 1, 2, 16, 17, 17, false},
    {"head_128", 1, 1, 128, 70, 512, false}, {"head_20", 2, 3, 20, 9, 13, true},
};

std::vector<double> Doubles(const std::vector<float>& x, size_t first, size_t size) {
  return {x.begin() + static_cast<ptrdiff_t>(first),
          x.begin() + static_cast<ptrdiff_t>(first + size)};
}

class AttentionTest : public testing::TestWithParam<Case> {
 protected:
  AttentionTest() : p_(GetParam()), width_(p_.heads * p_.head_size) {
    for (int i = 0; i < 3; ++i) {
      const int rows = i == 0 ? p_.queries : p_.keys;
      input_[i] = RandomFloats(size_t{1} * p_.sequences * rows * width_, i + 1);
      for (float& v : input_[i]) v *= 2.0f;
    }
  }

  AttentionArgs Args(GuardedFeatures& out) const {
    AttentionArgs args{.sequences = p_.sequences, .heads = p_.heads, .head_size = p_.head_size};
    args.queries = p_.queries, args.keys = p_.keys, args.causal = p_.causal;
    args.q = {input_[0].data(), width_, int64_t{p_.queries} * width_};
    args.k = {input_[1].data(), width_, int64_t{p_.keys} * width_};
    args.v = {input_[2].data(), width_, int64_t{p_.keys} * width_};
    args.out = out.view.data;
    args.out_pitch = out.view.pitch;
    args.out_batch = out.view.BatchStride();
    return args;
  }

  GuardedFeatures Output() const {
    return GuardedFeatures(
        {.batch = p_.sequences, .width = p_.queries, .channels = width_, .pitch = width_ + 4}, 1);
  }

  static std::vector<float> Values(GuardedFeatures& out) {
    std::vector<float> values;
    out.ForEach([&](float& v, int, int, int, int) { values.push_back(v); });
    return values;
  }

  Case p_;
  int width_;
  std::vector<float> input_[3];
};

TEST_P(AttentionTest, AgreesWithDouble) {
  GuardedFeatures out = Output();
  const AttentionArgs args = Args(out);
  std::vector<float> scratch(AttentionScratch(args), NAN);
  Attention(args, 0, args.Parts(), scratch.data());
  std::vector<double> expected;
  const size_t q = size_t{1} * p_.queries * width_, k = size_t{1} * p_.keys * width_;
  for (int n = 0; n < p_.sequences; ++n) {
    const std::vector<double> one =
        mjp::reference::Attention(Doubles(input_[0], n * q, q), Doubles(input_[1], n * k, k),
                                  Doubles(input_[2], n * k, k), width_, p_.heads, p_.causal);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  const std::vector<float> whole = Values(out);
  EXPECT_TRUE(CheckClose(whole, expected, 5e-6));
  EXPECT_TRUE(out.Intact());

  // in parts, the same bits
  GuardedFeatures parts = Output();
  const AttentionArgs again = Args(parts);
  for (int part = again.Parts() - 1; part >= 0; --part) {
    Attention(again, part, part + 1, scratch.data());
  }
  EXPECT_EQ(Values(parts), whole);
}

TEST_P(AttentionTest, NotANumberIsNotLost) {
  GuardedFeatures out = Output();
  const AttentionArgs args = Args(out);
  std::vector<float> scratch(AttentionScratch(args));
  input_[1][width_ - 1] = NAN;  // the last head's first key of the first sequence: all see it
  Attention(args, 0, args.Parts(), scratch.data());
  out.ForEach([&](float& v, int n, int, int, int c) {
    EXPECT_EQ(std::isnan(v), n == 0 && c >= width_ - p_.head_size);
  });
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// what stands behind the last query does not change a bit of it
TEST(CausalAttentionTest, LaterTokensDoNotMatter) {
  constexpr int kRows = 77, kSeen = 9, kWidth = 64;
  const std::vector<float> x = RandomFloats(size_t{kRows} * kWidth, 1);
  std::vector<float> all(x.size()), few(size_t{kSeen} * kWidth);
  AttentionArgs args{.head_size = kWidth, .queries = kRows, .keys = kRows};
  args.q = args.k = args.v = {x.data(), kWidth, 0};
  args.out = all.data();
  args.out_pitch = kWidth;
  args.causal = true;
  std::vector<float> scratch(AttentionScratch(args));
  Attention(args, 0, 1, scratch.data());
  args.queries = args.keys = kSeen;
  args.out = few.data();
  Attention(args, 0, 1, scratch.data());
  all.resize(few.size());
  EXPECT_EQ(all, few);
}

TEST(SoftmaxTest, AgreesWithDouble) {
  for (int size = 1; size < 70; ++size) {
    for (const float spread : {1.0f, 30.0f, 1000.0f}) {
      std::vector<float> x = RandomFloats(size, size);
      std::vector<double> expected;
      for (float& v : x) {
        v = v * spread + 50.0f;
        expected.push_back(v * 0.25);
      }
      mjp::cpu::Softmax(x.data(), size, 0.25f);
      EXPECT_TRUE(CheckClose(x, mjp::reference::Softmax(expected), 2e-6)) << size;
    }
  }
}

TEST(SoftmaxTest, WhatIsNotFiniteBecomesNotANumber) {
  for (const float wrong : {NAN, INFINITY, -INFINITY}) {
    for (const int at : {0, 17, 39}) {
      std::vector<float> x = RandomFloats(40, 1);
      x[at] = wrong;
      mjp::cpu::Softmax(x.data(), 40, 1.0f);
      for (const float v : x) EXPECT_TRUE(std::isnan(v)) << wrong << " at " << at;
    }
  }
}

TEST(RotaryTest, AgreesWithDouble) {
  constexpr int kPositions = 32, kHeads = 3, kSize = 20, kPitch = kHeads * kSize + 7;
  const mjp::cpu::RotaryTable table = mjp::cpu::MakeRotaryTable(kPositions, kSize, 10000.0);
  std::vector<float> x = RandomFloats(size_t{2} * kPositions * kPitch, 1);
  std::vector<double> expected(x.begin(), x.end());
  for (int n = 0; n < 2; ++n) {
    mjp::reference::Matrix rows;
    for (int r = 0; r < kPositions; ++r) {
      const auto from = x.begin() + (n * kPositions + r) * kPitch;
      rows.insert(rows.end(), from, from + kHeads * kSize);
    }
    rows = mjp::reference::Rotary(rows, kHeads * kSize, kHeads, 10000.0);
    for (size_t i = 0; i < rows.size(); ++i) {
      expected[(n * kPositions + i / (kHeads * kSize)) * kPitch + i % (kHeads * kSize)] = rows[i];
    }
  }
  ApplyRotary(table, kHeads, x.data(), kPitch, 0, 2 * kPositions);
  // an angle of up to 31 is rounded to float32
  EXPECT_TRUE(CheckClose(x, expected, 4e-6));
}

}  // namespace
