#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "kernels/ladder/conv1d.cuh"
#include "kernels/ladder/denoise.cuh"
#include "kernels/ladder/group_norm_mish.cuh"
#include "kernels/reference/conv_reference.h"
#include "kernels/reference/group_norm_reference.h"
#include "policy/scheduler.h"
#include "tests/support/check_close.h"
#include "tests/support/gpu/device_buffer.h"

// Every rung computes what the definition in double precision says.

namespace {

using mjp_test::CheckClose;
using mjp_test::DeviceBuffer;
namespace ladder = mjp::ladder;

std::vector<float> Normals(size_t count, float deviation, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> out(count);
  for (float& v : out) v = normal(random);
  return out;
}

// Floats on the device between guards.
class Floats {
 public:
  explicit Floats(const std::vector<float>& values) : buffer_(values.size() * 4) {
    buffer_.Upload(values.data());
  }
  explicit Floats(size_t count) : buffer_(count * 4) {}
  float* data() const { return buffer_.as<float>(); }
  std::vector<float> Download() const {
    return mjp_test::Floats(mjp::Format::kFp32, buffer_.Download());
  }

 private:
  DeviceBuffer buffer_;
};

TEST(LadderGpu, ConvolutionsAgreeWithTheDefinition) {
  DEVICE_OR_SKIP();
  mjp::reference::ConvShape shape;
  shape.batch = 3, shape.in = 200, shape.out = 68;
  shape.width = ladder::kLadderLength;
  shape.kernel_w = ladder::kLadderTaps, shape.pad_w = shape.kernel_w / 2;
  const auto x = Normals(size_t{1} * shape.batch * shape.in * shape.width, 1, 1);
  const float deviation = 1 / std::sqrt(static_cast<float>(shape.in * shape.kernel_w));
  const auto weight = Normals(size_t{1} * shape.out * shape.in * shape.kernel_w, deviation, 2);
  const auto bias = Normals(shape.out, 1, 3);
  const auto expected = mjp::reference::Conv(shape, x.data(), weight.data(), bias.data());
  const Floats dx(x), dw(weight), db(bias);
  for (const auto launch : {ladder::Conv1dNaive, ladder::Conv1dReduce, ladder::Conv1dTile}) {
    const Floats y(expected.size());
    launch({shape.batch, shape.in, shape.out, shape.width, shape.kernel_w, dx.data(), dw.data(),
            db.data(), y.data()},
           nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "a rung");
    EXPECT_TRUE(CheckClose(y.Download(), expected, 1e-5));
  }
}

TEST(LadderGpu, NormsAgreeWithTheDefinition) {
  DEVICE_OR_SKIP();
  constexpr int kBatch = 3, kChannels = 48, kLength = 10, kGroups = 8;
  const size_t count = size_t{kBatch} * kChannels * kLength;
  const auto x = Normals(count, 2, 4), weight = Normals(kChannels, 1, 5),
             bias = Normals(kChannels, 1, 6);
  const auto turned = [&](const auto& from, auto to, bool channels_last) {
    for (int n = 0; n < kBatch; ++n)
      for (int c = 0; c < kChannels; ++c)
        for (int l = 0; l < kLength; ++l) {
          const size_t first = (size_t{1} * n * kChannels + c) * kLength + l;
          const size_t last = (size_t{1} * n * kLength + l) * kChannels + c;
          channels_last ? to[last] = from[first] : to[first] = from[last];
        }
    return to;
  };
  auto normal = mjp::reference::GroupNorm(turned(x, std::vector<double>(count), true), kBatch,
                                          kLength, kChannels, kGroups, weight.data(), bias.data());
  for (double& v : normal) v = mjp::reference::Activate(mjp::Activation::kMish, v);
  const auto expected = turned(normal, std::vector<double>(count), false);
  const Floats dx(x), dw(weight), db(bias), mean(kBatch * kGroups), inverse(kBatch * kGroups),
      normalised(count);
  for (const auto launch : {ladder::GroupNormMishUnfused, ladder::GroupNormMishFused}) {
    const Floats y(count);
    launch({kBatch, kChannels, kLength, kGroups, dx.data(), dw.data(), db.data(), mean.data(),
            inverse.data(), normalised.data(), y.data()},
           nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "a rung");
    EXPECT_TRUE(CheckClose(y.Download(), expected, 1e-5));
  }
}

// The step of Ho et al. with the betas of Nichol and Dhariwal.
double Step(int t, double x, double output, double noise) {
  const auto cosine = [](double s) {
    return std::pow(std::cos((s + 0.008) / 1.008 * std::numbers::pi / 2), 2);
  };
  double product = 1, before = 1, beta = 0;
  for (int s = 0; s <= t; ++s) {
    beta = std::min(1 - cosine((s + 1) / 100.0) / cosine(s / 100.0), 0.999);
    before = product;
    product *= 1 - beta;
  }
  const double x0 =
      std::clamp((x - std::sqrt(1 - product) * output) / std::sqrt(product), -1.0, 1.0);
  const double mean =
      (std::sqrt(before) * beta * x0 + std::sqrt(1 - beta) * (1 - before) * x) / (1 - product);
  return t == 0 ? mean : mean + std::sqrt((1 - before) / (1 - product) * beta) * noise;
}

TEST(LadderGpu, DenoisingStepsAgreeWithTheDefinition) {
  DEVICE_OR_SKIP();
  constexpr size_t kCount = 150;
  const auto x = Normals(kCount, 1, 7), output = Normals(kCount, 1, 8),
             noise = Normals(kCount, 1, 9);
  std::vector<mjp::DenoiseStep> table =
      mjp::MakeSchedule(mjp::SchedulerConfig{}, mjp::SamplerKind::kDdpm, 100);
  std::reverse(table.begin(), table.end());
  DeviceBuffer device_table(table.size() * sizeof(mjp::DenoiseStep));
  device_table.Upload(table.data());
  const Floats dx(x), dout(output), dnoise(noise), x0(kCount), mean(kCount);
  for (const int t : {0, 1, 20, 50, 90, 99}) {
    std::vector<double> expected;
    for (size_t i = 0; i < kCount; ++i) expected.push_back(Step(t, x[i], output[i], noise[i]));
    for (const auto launch : {ladder::DenoiseStraight, ladder::DenoiseTable}) {
      const Floats next(kCount);
      ladder::DenoiseArgs a;
      a.count = kCount, a.timestep = t;
      a.table = device_table.as<mjp::DenoiseStep>();
      a.x = dx.data(), a.output = dout.data(), a.noise = dnoise.data();
      a.x0 = x0.data(), a.mean = mean.data(), a.next = next.data();
      launch(a, nullptr);
      mjp::CheckCuda(cudaDeviceSynchronize(), "a rung");
      // float32's cosine near pi / 2 and 1 - product near 0 cost digits at both ends of the chain
      EXPECT_TRUE(CheckClose(next.Download(), expected, 2e-4)) << "timestep " << t;
    }
  }
}

}  // namespace
