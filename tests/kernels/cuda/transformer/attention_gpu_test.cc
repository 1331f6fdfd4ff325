#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cuda/transformer/attention.cuh"
#include "kernels/reference/attention_reference.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Format;

struct Case {
  int sequences, heads, head_size, queries, keys;
  bool rotary;
};

// ACT's encoder and decoder, the denoiser, CLIP's tower, and sizes that fill no tile.
const Case kCases[] = {
    {1, 8, 64, 302, 302, false},  {3, 8, 64, 100, 302, false}, {2, 8, 64, 32, 32, true},
    {2, 12, 64, 197, 197, false}, {1, 2, 16, 20, 26, false},   {2, 4, 32, 16, 16, true},
    {1, 3, 8, 7, 5, true},        {1, 2, 80, 33, 65, false},   {40, 2, 128, 70, 602, true},
    {1, 4, 64, 50, 400, false},   {2, 2, 64, 40, 150, true},   {1, 2, 64, 40, 129, false},
    {1, 2, 64, 40, 256, false},   {1, 2, 64, 40, 257, false},  {1, 4, 64, 50, 320, true},
    {1, 4, 64, 50, 321, true}};

std::vector<double> Part(const std::vector<float>& all, size_t first, size_t rows, size_t pitch,
                         size_t column, size_t width) {
  std::vector<double> part;
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < width; ++c) part.push_back(all[first + r * pitch + column + c]);
  return part;
}

// How close the format comes to the definition; weights of the second product are operands too.
double Tolerance(Format format) {
  if (mjp::FormatBytes(format) == 4) return 2e-6;
  return format == Format::kFp16 ? 2e-3 : 1.6e-2;
}

class AttentionGpu : public testing::TestWithParam<Format> {};

TEST_P(AttentionGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 3);
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.sequences << " sequences, " << c.heads << " heads of "
                                    << c.head_size << ", " << c.queries << " x " << c.keys);
    const size_t width = size_t{1} * c.heads * c.head_size, pitch = 3 * width;
    const size_t rows = std::max(c.queries, c.keys), batch = rows * pitch;
    const auto qkv = operands.Draw(c.sequences * batch);
    std::vector<float> cosines, sines;
    const int half = c.head_size / 2;
    for (size_t p = 0; p < rows; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = double(p) * std::pow(10000.0, -double(i) / half);
        cosines.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    const mjp_test::DeviceBuffer in(mjp_test::Stored(format, qkv)), cosine(cosines), sine(sines);
    const size_t out_size = size_t{1} * c.sequences * c.queries * width;
    const mjp_test::DeviceBuffer out(out_size * mjp::FormatBytes(format));
    const auto at = [&](size_t column) {
      return mjp::DeviceRows{in.as<uint8_t>() + column * mjp::FormatBytes(format),
                             static_cast<int64_t>(pitch), static_cast<int64_t>(batch)};
    };
    mjp::TokenAttentionArgs a;
    a.sequences = c.sequences, a.heads = c.heads, a.head_size = c.head_size;
    a.queries = c.queries, a.keys = c.keys;
    a.q = at(0), a.k = at(width), a.v = at(2 * width);
    if (c.rotary) a.cosines = cosine.as<float>(), a.sines = sine.as<float>();
    a.out = out.data();
    mjp::LaunchTokenAttention(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "attention");
    const auto y = mjp_test::Floats(format, out.Download());
    double worst = 0;
    for (int n = 0; n < c.sequences; n += 20) {
      auto q = Part(qkv, n * batch, c.queries, pitch, 0, width);
      auto k = Part(qkv, n * batch, c.keys, pitch, width, width);
      const auto v = Part(qkv, n * batch, c.keys, pitch, 2 * width, width);
      const int columns = static_cast<int>(width);
      if (c.rotary) {
        q = mjp::reference::Rotary(q, columns, c.heads, 10000);
        k = mjp::reference::Rotary(k, columns, c.heads, 10000);
      }
      const auto expected = mjp::reference::Attention(q, k, v, columns, c.heads, false);
      for (size_t i = 0; i < expected.size(); ++i) {
        const double d = std::abs(y[n * expected.size() + i] - expected[i]);
        if (!(d <= worst)) worst = d;
      }
    }
    RecordProperty("difference", std::to_string(worst));
    EXPECT_LE(worst, (c.rotary ? 4 : 1) * Tolerance(format));
  }
}

TEST_P(AttentionGpu, NaNReachesItsRowAlone) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  constexpr int kRows = 70, kSize = 32, kBad = 65;
  std::vector<float> q(kRows * kSize, 0.5f);
  q[kBad * kSize + 3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> k(kRows * kSize, 0.25f);
  const mjp_test::DeviceBuffer dq(mjp_test::Stored(format, q)), dk(mjp_test::Stored(format, k)),
      out(kRows * kSize * mjp::FormatBytes(format));
  mjp::TokenAttentionArgs a;
  a.head_size = kSize, a.queries = a.keys = kRows;
  a.q = {dq.data(), kSize, 0};
  a.k = a.v = {dk.data(), kSize, 0};
  a.out = out.data();
  mjp::LaunchTokenAttention(format, a, nullptr);
  mjp::CheckCuda(cudaDeviceSynchronize(), "attention");
  const auto y = mjp_test::Floats(format, out.Download());
  for (int i = 0; i < kRows * kSize; ++i) EXPECT_EQ(std::isnan(y[i]), i / kSize == kBad) << i;
}

TEST(AttentionGpuShapes, RefusesHeadsWithoutAKernel) {
  mjp::TokenAttentionArgs a;
  a.queries = a.keys = 4;
  for (const int size : {12, 136}) {
    a.head_size = size;
    EXPECT_THROW(mjp::LaunchTokenAttention(Format::kFp16, a, nullptr), mjp::Error) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, AttentionGpu,
                         testing::Values(Format::kFp32, Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
