#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "kernels/cuda/encoder_kernel/plan.h"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/reference/conv_reference.h"
#include "kernels/reference/group_norm_reference.h"
#include "tests/support/goldens/differences.h"
#include "tests/support/gpu/device_buffer.h"

// The encoder kernel against its definition in double precision, in which each map is rounded to
// storage as the kernel rounds it.

namespace {

using mjp::Format;
using mjp::encoder_kernel::Args;
using mjp::encoder_kernel::Block;
using mjp::encoder_kernel::Convolution;
using mjp::encoder_kernel::Encoder;
using mjp_test::DeviceBuffer;
using mjp_test::OperandSource;

// (pictures, height, width, channels)
struct Map {
  int pictures, size, channels;
  std::vector<float> values;
};

// A convolution with its norm, on the device and for the definition.
struct Weighted {
  Convolution convolution;
  std::vector<float> weight, scale, shift;
  std::unique_ptr<DeviceBuffer> dweight, dscale, dshift;

  Weighted(Format format, OperandSource& operands, int size, int in_c, int out_c, int kernel,
           int stride, int group_channels) {
    mjp::ConvShape& s = convolution.shape;
    s.in_h = s.in_w = size, s.in_c = in_c, s.out_c = out_c, s.kernel_h = s.kernel_w = kernel;
    s.stride = stride, s.pad_h = s.pad_w = kernel / 2;
    s.out_h = s.out_w = (size - 1) / stride + 1;
    weight = operands.Draw(size_t{1} * out_c * s.K(), 0.0f, 1 / std::sqrt(float(s.K())));
    scale = operands.Draw(out_c, 1.0f, 0.5f), shift = operands.Draw(out_c, 0.0f, 1.0f);
    dweight = std::make_unique<DeviceBuffer>(mjp::PackConvWeights(format, s, weight.data(), in_c));
    dscale = std::make_unique<DeviceBuffer>(scale);
    dshift = std::make_unique<DeviceBuffer>(shift);
    convolution.weight = dweight->data();
    convolution.groups = out_c / group_channels;
    convolution.scale = dscale->as<float>(), convolution.shift = dshift->as<float>();
  }
};

struct Case {
  const char* name;
  int pictures, size, in_c;
  std::vector<int> channels, strides;  // of stages of two blocks
  int group_channels, ctas;
  int stem = 0;  // channels of a stem before them; 0: none
};
const Case kCases[] = {
    {"one row a slice", 2, 12, 32, {32}, {1}, 16, 16},
    {"uneven slices", 3, 13, 48, {48, 96}, {1, 2}, 16, 16},
    {"odd size, stride 2, clusters of 8", 2, 11, 16, {32, 64}, {2, 2}, 8, 8},
    {"groups of 32 channels", 2, 9, 64, {64}, {1}, 32, 16},
    {"two vectors a thread", 1, 20, 64, {64}, {1}, 16, 8},
    {"512 vectors in a CTA, by two a thread", 1, 32, 16, {32}, {1}, 16, 8},
    {"756, by three", 1, 54, 16, {16}, {1}, 8, 8},
    {"all parts on one slice", 2, 5, 256, {512}, {2}, 16, 16},
    {"one position", 2, 2, 64, {64}, {2}, 16, 16},
    {"as many pictures as take two turns", 14, 10, 32, {32}, {1}, 16, 16},
    {"the shipped encoder's blocks", 2, 48, 32, {32, 64, 64}, {2, 2, 2}, 16, 16},
    {"the shipped encoder", 2, 48, 16, {32, 64, 64}, {2, 2, 2}, 8, 16, 32},
    {"a stem of odd size", 2, 17, 16, {16}, {1}, 8, 8, 16},
};

struct Network {
  std::vector<std::unique_ptr<Weighted>> weights;
  Encoder encoder;
  const Weighted* stem = nullptr;
  std::vector<const Weighted*> order;  // shortcut or null, first, second of each block

  Network(Format format, OperandSource& operands, const Case& c) {
    int size = c.size, in_c = c.in_c;
    const auto make = [&](int out_c, int kernel, int stride) {
      weights.push_back(std::make_unique<Weighted>(format, operands, size, in_c, out_c, kernel,
                                                   stride, c.group_channels));
      return weights.back().get();
    };
    const auto add = [&](int out_c, int kernel, int stride) {
      return order.emplace_back(make(out_c, kernel, stride))->convolution;
    };
    if (c.stem > 0) {
      stem = make(c.stem, 3, 1);
      encoder.stem = stem->convolution;
      in_c = c.stem;
    }
    for (size_t stage = 0; stage < c.channels.size(); ++stage) {
      for (int b = 0; b < 2; ++b) {
        const int stride = b == 0 ? c.strides[stage] : 1, out_c = c.channels[stage];
        Block& block = encoder.blocks.emplace_back();
        if (stride != 1 || in_c != out_c)
          block.shortcut = add(out_c, 1, stride);
        else
          order.push_back(nullptr);
        block.first = add(out_c, 3, stride);
        size = block.first.shape.out_h, in_c = out_c;
        block.second = add(out_c, 3, 1);
      }
    }
  }
};

// norm(conv(x)) [+ residual] [then ReLU], rounded to storage
Map Layer(Format format, const Weighted& w, const Map& x, const Map* residual, bool relu) {
  const mjp::ConvShape& s = w.convolution.shape;
  const int in_area = x.size * x.size, area = s.out_h * s.out_w;
  Map y = {x.pictures, s.out_h, s.out_c, {}};
  const mjp::reference::ConvShape shape = {1,          s.in_c,     x.size,   x.size,  s.out_c,
                                           s.kernel_h, s.kernel_w, s.stride, s.pad_h, s.pad_w};
  for (int n = 0; n < x.pictures; ++n) {
    std::vector<float> planes(size_t{1} * in_area * s.in_c);  // (channel, position)
    for (int p = 0; p < in_area; ++p)
      for (int c = 0; c < s.in_c; ++c)
        planes[c * in_area + p] = x.values[(size_t{1} * n * in_area + p) * s.in_c + c];
    const auto sums = mjp::reference::Conv(shape, planes.data(), w.weight.data(), nullptr);
    std::vector<double> last(sums.size());  // (position, channel)
    for (int p = 0; p < area; ++p)
      for (int c = 0; c < s.out_c; ++c) last[p * s.out_c + c] = sums[c * area + p];
    for (double v : mjp::reference::GroupNorm(last, 1, area, s.out_c, w.convolution.groups,
                                              w.scale.data(), w.shift.data())) {
      if (residual != nullptr) v += residual->values[y.values.size()];
      if (relu) v = std::max(v, 0.0);
      y.values.push_back(mjp_test::Operand(format, static_cast<float>(v)));
    }
  }
  return y;
}

Map Definition(Format format, const Network& network, Map x) {
  if (network.stem != nullptr) x = Layer(format, *network.stem, x, nullptr, true);
  for (size_t i = 0; i < network.order.size(); i += 3) {
    const Weighted* shortcut = network.order[i];
    const Map residual = shortcut ? Layer(format, *shortcut, x, nullptr, false) : x;
    const Map hidden = Layer(format, *network.order[i + 1], x, nullptr, true);
    x = Layer(format, *network.order[i + 2], hidden, &residual, true);
  }
  return x;
}

// The means of the last map in place of it, whose values are `y`: bit-equal.
void CheckFeatures(Format format, Args args, const std::vector<float>& y) {
  const auto& last = args.layers[args.layer_count - 1];
  const int positions = last.out_h * last.out_w, channels = last.out_c;
  const DeviceBuffer features(size_t{4} * args.pictures * channels);
  args.features = features.as<float>(), args.y = nullptr;
  mjp::encoder_kernel::LaunchEncoderKernel(format, args, nullptr);
  mjp::CheckCuda(cudaDeviceSynchronize(), "features");
  const auto means = mjp_test::Floats(Format::kFp32, features.Download());
  for (size_t i = 0; i < means.size(); ++i) {
    float sum = 0;
    for (int p = 0; p < positions; ++p)
      sum += y[(i / channels * positions + p) * channels + i % channels];
    ASSERT_EQ(means[i], sum / static_cast<float>(positions)) << "feature " << i;
  }
}

class EncoderKernelGpu : public testing::TestWithParam<Format> {};

TEST_P(EncoderKernelGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  if (mjp::GpuTraits::Current().LargestCluster() < 16)
    GTEST_SKIP() << "no clusters of 16 CTAs here";
  const Format format = GetParam();
  OperandSource operands(format, 29);
  int averaged = 0;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Network network(format, operands, c);
    // the last picture is the first again: its bits are the same
    const size_t area = size_t{1} * c.size * c.size * c.in_c;
    Map x = {c.pictures, c.size, c.in_c, operands.Draw(c.pictures * area, 2.0f, 1.0f)};
    std::copy_n(x.values.begin(), area, x.values.end() - static_cast<std::ptrdiff_t>(area));
    const Map expected = Definition(format, network, x);

    auto args =
        mjp::encoder_kernel::Plan(network.encoder, c.ctas, mjp::GpuTraits::Current().shared_bytes);
    ASSERT_TRUE(args);
    ASSERT_GT(mjp::encoder_kernel::ClustersAtOnce(format, *args), 0);
    const DeviceBuffer dx(mjp_test::Stored(format, x.values));
    const DeviceBuffer dy(expected.values.size() * mjp::FormatBytes(format));
    args->pictures = c.pictures, args->x = dx.data(), args->y = dy.data();
    mjp::encoder_kernel::LaunchEncoderKernel(format, *args, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), c.name);
    const auto y = mjp_test::Floats(format, dy.Download());

    const auto blocks = static_cast<double>(network.encoder.blocks.size());
    const double rounding = (format == Format::kFp16 ? 1.2e-3 : 9e-3) * blocks;
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], expected.values[i], rounding * (1 + std::abs(expected.values[i])))
          << "element " << i;
    const size_t each = y.size() / c.pictures;
    for (size_t i = 0; i < each; ++i)
      ASSERT_EQ(y[i], y[y.size() - each + i]) << "the same picture, element " << i;
    averaged += CanAverage(*args);
    if (CanAverage(*args)) CheckFeatures(format, *args, y);
  }
  EXPECT_GE(averaged, 2);
}

TEST(EncoderKernelGpuTest, OtherFormatsAreLeftToTheLaunches) {
  DEVICE_OR_SKIP();
  OperandSource operands(Format::kFp16, 5);
  const Network network(Format::kFp16, operands, kCases[0]);
  EXPECT_FALSE(mjp::encoder_kernel::PlanHere(Format::kFp32, network.encoder, 1));
  EXPECT_FALSE(mjp::encoder_kernel::PlanHere(Format::kFp16, network.encoder, 10000))
      << "many pictures";
}

INSTANTIATE_TEST_SUITE_P(Formats, EncoderKernelGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
