#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/cuda/norm/group_norm_max_pool.cuh"
#include "kernels/reference/group_norm_reference.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Format;

struct Case {
  const char* name;
  int frames, height, width, channels, groups;
};
const Case kCases[] = {
    {"ResNet stem", 3, 48, 48, 64, 4},   {"odd size", 2, 11, 7, 32, 4},
    {"uneven strips", 2, 42, 42, 64, 4}, {"frames for all multiprocessors", 40, 9, 10, 64, 4},
    {"one group", 1, 5, 6, 24, 1},       {"one pixel", 2, 1, 1, 16, 2}};

class GroupNormMaxPoolGpu : public testing::TestWithParam<Format> {};

// y = max over 3x3, stride 2, of max(GN(x), 0), in double.
TEST_P(GroupNormMaxPoolGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto draw = [&](size_t n, float mean) {
    std::vector<float> v(n);
    for (float& e : v) e = mjp_test::Operand(format, mean + normal(random));
    return v;
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const int positions = c.height * c.width;
    const auto x = draw(size_t{1} * c.frames * positions * c.channels, 3.0f);
    const auto weight = draw(c.channels, 0.0f), bias = draw(c.channels, 0.0f);  // either sign
    mjp::GroupNormMaxPoolArgs a;
    a.pool = {c.frames,  c.height, c.width, (c.height - 1) / 2 + 1, (c.width - 1) / 2 + 1,
              c.channels};
    const int out_h = a.pool.out_h, out_w = a.pool.out_w;
    const size_t out = size_t{1} * c.frames * out_h * out_w * c.channels;
    const auto stored = mjp_test::Stored(format, x);
    mjp_test::DeviceBuffer dx(stored.size()), dy(out * mjp::FormatBytes(format));
    mjp_test::DeviceBuffer dw(weight.size() * 4), db(bias.size() * 4);
    dx.Upload(stored.data()), dw.Upload(weight.data()), db.Upload(bias.data());
    a.pool.x = dx.data(), a.pool.y = dy.data(), a.groups = c.groups;
    a.weight = dw.as<float>(), a.bias = db.as<float>();
    ASSERT_TRUE(mjp::GroupNormMaxPoolSupports(format, a));
    mjp::LaunchGroupNormMaxPool(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), c.name);
    const auto y = mjp_test::Floats(format, dy.Download());

    const auto normalised =
        mjp::reference::GroupNorm({x.begin(), x.end()}, c.frames, positions, c.channels, c.groups,
                                  weight.data(), bias.data());
    for (size_t i = 0; i < out; ++i) {
      const int ch = static_cast<int>(i) % c.channels, o = static_cast<int>(i) / c.channels;
      const int f = o / (out_h * out_w), oy = o / out_w % out_h, ox = o % out_w;
      double best = 0;
      for (int iy = oy * 2 - 1; iy <= oy * 2 + 1; ++iy)
        for (int ix = ox * 2 - 1; ix <= ox * 2 + 1; ++ix)
          if (iy >= 0 && iy < c.height && ix >= 0 && ix < c.width)
            best = std::max(
                best,
                normalised[(size_t{1} * f * positions + iy * c.width + ix) * c.channels + ch]);
      ASSERT_NEAR(y[i], best, mjp_test::NormTolerance(format) * (1 + best))
          << "frame " << f << " channel " << ch << " output " << o % (out_h * out_w);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, GroupNormMaxPoolGpu,
                         testing::Values(Format::kFp32, Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
