#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/conv/stem_max_pool.cuh"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Format;

constexpr int kIn = 16, kOut = 64, kTaps = 4, kPad = 2;

struct Case {
  int frames, height, width;
  bool bias;
};
// Maps that fill the tiles of 8 x 10 pooled positions, and odd ones that do not.
const Case kCases[] = {
    {1, 16, 20, true}, {1, 48, 60, true}, {3, 37, 45, true}, {2, 5, 3, false}, {1, 1, 1, true}};

mjp::ConvArgs ArgsOf(const Case& c) {
  mjp::ConvArgs a;
  a.shape.batch = c.frames, a.shape.in_c = kIn, a.shape.out_c = kOut;
  a.shape.in_h = a.shape.out_h = c.height, a.shape.in_w = a.shape.out_w = c.width;
  a.shape.kernel_h = a.shape.kernel_w = kTaps, a.shape.pad_h = a.shape.pad_w = kPad;
  a.relu = true;
  return a;
}

struct Operands {
  std::vector<float> x, weight, bias;
};

// The convolution's ReLU by its definition, (frames, height, width, 64).
std::vector<double> Convolution(const Case& c, const Operands& o) {
  std::vector<double> map;
  for (int f = 0; f < c.frames; ++f)
    for (int y = 0; y < c.height; ++y)
      for (int x = 0; x < c.width; ++x)
        for (int m = 0; m < kOut; ++m) {
          double sum = c.bias ? o.bias[m] : 0;
          for (int tap = 0; tap < kTaps * kTaps; ++tap) {
            const int iy = y - kPad + tap / kTaps, ix = x - kPad + tap % kTaps;
            if (iy < 0 || iy >= c.height || ix < 0 || ix >= c.width) continue;
            const size_t pixel = (size_t{1} * f * c.height + iy) * c.width + ix;
            for (int i = 0; i < kIn; ++i)
              sum += double{o.x[pixel * kIn + i]} * o.weight[(m * kIn + i) * kTaps * kTaps + tap];
          }
          map.push_back(std::max(sum, 0.0));
        }
  return map;
}

double Pooled(const Case& c, const std::vector<double>& map, int frame, int y, int x, int m) {
  double best = -INFINITY;
  for (int iy = std::max(2 * y - 1, 0); iy <= std::min(2 * y + 1, c.height - 1); ++iy)
    for (int ix = std::max(2 * x - 1, 0); ix <= std::min(2 * x + 1, c.width - 1); ++ix)
      best = std::max(best, map[((size_t{1} * frame * c.height + iy) * c.width + ix) * kOut + m]);
  return best;
}

class StemMaxPoolGpu : public testing::TestWithParam<Format> {};

TEST_P(StemMaxPoolGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  mjp_test::OperandSource operands(format, 21), numbers(Format::kFp32, 22);
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.frames << " frames of " << c.height << "x" << c.width);
    mjp::ConvArgs a = ArgsOf(c);
    if (!mjp::StemMaxPoolSupports(format, a)) GTEST_SKIP() << "no warpgroup products here";
    const Operands o = {operands.Draw(size_t{1} * c.frames * c.height * c.width * kIn),
                        operands.Draw(kOut * kIn * kTaps * kTaps, 0.0f, 1 / 16.0f),
                        numbers.Draw(kOut)};
    const int h = (c.height + 1) / 2, w = (c.width + 1) / 2;
    const mjp_test::DeviceBuffer x(mjp_test::Stored(format, o.x)),
        weight(mjp::PackConvWeights(format, a.shape, o.weight.data(), kIn)), bias(o.bias),
        y(size_t{2} * c.frames * h * w * kOut);
    a.x = x.data(), a.weight = weight.data(), a.bias = c.bias ? bias.as<float>() : nullptr;
    mjp::LaunchStemMaxPool(format, {a, h, w, y.data()}, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "stem and max-pool");
    const auto out = mjp_test::Floats(format, y.Download());
    const std::vector<double> map = Convolution(c, o);
    double worst = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const int m = i % kOut, ox = i / kOut % w, oy = i / kOut / w % h, frame = i / kOut / w / h;
      const double expected = Pooled(c, map, frame, oy, ox, m);
      const double d = std::abs(out[i] - expected) / (1 + expected);
      if (!(d <= worst)) worst = d;
    }
    // the result's rounding; its float32 sum is far closer
    EXPECT_LE(worst, format == Format::kFp16 ? 6e-4 : 5e-3);
  }
}

TEST_P(StemMaxPoolGpu, OtherShapesAreLeftToOtherKernels) {
  const Format format = GetParam();
  mjp::ConvArgs a = ArgsOf(kCases[0]);
  EXPECT_FALSE(mjp::StemMaxPoolSupports(Format::kFp32, a));
  a.relu = false;
  EXPECT_FALSE(mjp::StemMaxPoolSupports(format, a));
  a.relu = true, a.shape.out_c = 32;
  EXPECT_FALSE(mjp::StemMaxPoolSupports(format, a));
  a.shape.out_c = 64, a.shape.stride = 2;
  EXPECT_FALSE(mjp::StemMaxPoolSupports(format, a));
}

INSTANTIATE_TEST_SUITE_P(Formats, StemMaxPoolGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
