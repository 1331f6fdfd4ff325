// The row kernel's plan, executed on the host, against the definition of a pass: every table,
// stream and place of activations, without a device.

#include <gtest/gtest.h>

#include <deque>

#include "kernels/reference/row_kernel_interpreter.h"
#include "policy/cuda/unet/row_kernel_unet.h"
#include "policy/cuda/unet/unet_shapes.h"
#include "tests/support/gpu/unet_pass_check.h"

namespace {

using mjp::Format;

// The weights of a network in host memory, packed, and FiLM's terms of a step.
class HostUnet {
 public:
  HostUnet(const mjp::UnetWeights& weights, const mjp::UnetPolicyConfig& config,
           const std::vector<double>& mish_cond)
      : unet_(mjp::UnetShapes(config)) {
    size_t i = 0;
    mjp::MapUnet(
        weights,
        [&](const mjp::ResidualBlock1d& block) {
          AddBlock(block, std::get<mjp::NormConvBlock>(unet_.steps[i].layer), i == 0, mish_cond);
          return ++i;
        },
        [&](const mjp::Conv& conv, const mjp::UnetPlace&) {
          Pack(conv, nullptr, std::get<mjp::DeviceNormConv>(unet_.steps[i].layer));
          return static_cast<double>(++i);
        });
    Pack(weights.final_conv, nullptr, unet_.final_conv);
    SetNorm(weights.final_norm, unet_.final_norm);
    unet_.head.weight = weights.out.weight.data.data(),
    unet_.head.bias = weights.out.bias.data.data();
  }
  const mjp::NormConvUnet& unet() const { return unet_; }
  const std::vector<double>& film() const { return film_; }

 private:
  static void SetNorm(const mjp::GroupNorm& norm, mjp::DeviceNorm& to) {
    to.weight = norm.weight.data.data(), to.bias = norm.bias.data.data();
  }
  void Pack(const mjp::Conv& conv, const mjp::Conv* shortcut, mjp::DeviceNormConv& to) {
    packed_.push_back(mjp::PackWeightFragments(Format::kFp16, to.shape, conv.weight.data.data(),
                                               shortcut ? shortcut->weight.data.data() : nullptr));
    to.weight = packed_.back().data();
    to.bias = conv.bias.data.data();
    if (shortcut) to.shortcut_bias = shortcut->bias.data.data();
  }
  // (out, in, taps) as (taps, in, out).
  const float* Turned(const mjp::Tensor& w) {
    const size_t out = w.shape[0], in = w.shape[1], taps = w.shape[2];
    auto& turned = floats_.emplace_back(w.data.size());
    for (size_t o = 0; o < out; ++o)
      for (size_t c = 0; c < in; ++c)
        for (size_t k = 0; k < taps; ++k)
          turned[(k * in + c) * out + o] = w.data[(o * in + c) * taps + k];
    return turned.data();
  }
  void AddBlock(const mjp::ResidualBlock1d& block, mjp::NormConvBlock& to, bool first,
                const std::vector<double>& mish_cond) {
    if (first) {
      unet_.first.weight = Turned(block.conv1.weight);
      unet_.first.bias = block.conv1.bias.data.data();
      unet_.first.shortcut_weight = Turned(block.residual->weight);
      unet_.first.shortcut_bias = block.residual->bias.data.data();
    } else {
      Pack(block.conv1, block.residual ? &*block.residual : nullptr, to.conv1);
    }
    Pack(block.conv2, nullptr, to.conv2);
    SetNorm(block.norm1, to.norm1), SetNorm(block.norm2, to.norm2);
    const std::vector<double> terms = mjp::reference::Dense(block.film, mish_cond);
    const int channels = static_cast<int>(block.conv2.weight.shape[0]),
              begin = static_cast<int>(film_.size());
    const bool scales = static_cast<int>(terms.size()) == 2 * channels;
    to.film = {scales ? begin : -1, scales ? begin + channels : begin};
    film_.insert(film_.end(), terms.begin(), terms.end());
  }

  mjp::NormConvUnet unet_;
  std::vector<double> film_;
  std::deque<std::vector<uint8_t>> packed_;
  std::deque<std::vector<float>> floats_;
};

constexpr mjp::row_kernel::Config kAcrossClusters = {
    mjp::row_kernel::kMaxCtas, mjp::row_kernel::kClustersRing, mjp::row_kernel::kClusters};

bool Supported(const mjp_test::UnetShape& shape, const mjp::row_kernel::Config& config,
               const char* gpu = "h200") {
  const mjp::UnetPolicyConfig policy = mjp::UnetOf(*mjp_test::UnetCheckpoint(shape)).config;
  return mjp::PlanRowKernel(mjp::UnetShapes(policy), Format::kFp16, policy.horizon, config,
                            mjp::GpuTraits::Named(gpu))
      .has_value();
}

// Of one row, at one step.
void CheckPlan(const mjp_test::UnetShape& shape, const mjp::row_kernel::Config& config) {
  const auto checkpoint = mjp_test::UnetCheckpoint(shape);
  const mjp::UnetWeights& weights = mjp::UnetOf(*checkpoint).unet;
  const mjp::UnetPolicyConfig& policy = mjp::UnetOf(*checkpoint).config;
  std::vector<double> cond(policy.CondDim()), x;
  for (size_t i = 0; i < cond.size(); ++i) cond[i] = std::sin(3.0 * static_cast<double>(i));
  for (int i = 0; i < policy.horizon * policy.action_dim; ++i) x.push_back(std::cos(1.7 * i));
  std::vector<double> mish_cond = mjp::reference::StepEmbedding(weights, 7);
  mish_cond.insert(mish_cond.end(), cond.begin(), cond.end());
  mish_cond = mjp::reference::MishOf(mish_cond);
  const HostUnet host(weights, policy, mish_cond);
  const auto planned = mjp::PlanRowKernel(mjp::UnetShapes(policy), Format::kFp16, policy.horizon,
                                          config, mjp::GpuTraits::Named("h200"));
  ASSERT_TRUE(planned);
  mjp::reference::RowKernelInterpreter interpreter(planned->plan, config,
                                                   mjp::RowKernelWeights(host.unet()), host.film());
  const std::vector<double> sums = interpreter.Run(planned->x, x, policy.action_dim);
  EXPECT_TRUE(interpreter.ReadAll());
  mjp::reference::Signal signal = {policy.action_dim, policy.horizon, {}};
  for (int c = 0; c < policy.action_dim; ++c)
    for (int l = 0; l < policy.horizon; ++l) signal.values.push_back(x[l * policy.action_dim + c]);
  const mjp::reference::Signal expected = mjp::reference::UnetPass(weights, signal, mish_cond);
  for (int c = 0; c < policy.action_dim; ++c)
    for (int l = 0; l < policy.horizon; ++l) {
      const double y = expected.values[c * policy.horizon + l],
                   actual = sums[c * policy.horizon + l] + host.unet().head.bias[c];
      ASSERT_LE(std::abs(actual - y), 5e-3 * (1 + std::abs(y))) << "channel " << c << " at " << l;
    }
}

TEST(RowKernelPlan, ComputesThePass) {
  const mjp_test::UnetShape shapes[] = {
      {"shipped", {32, 64, 128}, 16, 5, 8, 1},  {"horizon_8", {32, 64, 128}, 8, 5, 8, 1},
      {"horizon_32", {32, 64}, 32, 5, 8, 1, 3}, {"one_level", {64}, 16, 5, 8, 1},
      {"kernel_3", {64, 128}, 16, 3, 8, 1},     {"sixteen_groups", {64, 128}, 16, 5, 16, 1},
      {"wide", {64, 128, 256}, 16, 5, 8, 1},    {"two_arms", {64, 128}, 32, 5, 8, 1, 14}};
  for (const mjp_test::UnetShape& shape : shapes) {
    for (const int ctas : {1, 2, 4, 8}) {
      if (shape.down_dims.front() / 8 % ctas != 0) continue;  // half a tile at least
      SCOPED_TRACE(std::string(shape.name) + ", " + std::to_string(ctas) + " CTAs");
      CheckPlan(shape, {ctas, mjp::row_kernel::kShallowRing});
    }
  }
}

TEST(RowKernelPlan, ComputesThePassAcrossClusters) {
  const mjp_test::UnetShape shapes[] = {
      {"128", {128, 256}, 16, 5, 8, 1},           {"horizon_8", {128, 256}, 8, 5, 8, 1},
      {"horizon_32", {128, 256}, 32, 5, 8, 1, 3}, {"one_level", {128}, 16, 5, 8, 1},
      {"kernel_3", {128, 256}, 16, 3, 8, 1},      {"three_levels", {128, 256, 512}, 16, 5, 8, 1},
      {"two_arms", {128, 256}, 32, 3, 8, 1, 14}};
  for (const mjp_test::UnetShape& shape : shapes) {
    SCOPED_TRACE(shape.name);
    CheckPlan(shape, kAcrossClusters);
  }
}

TEST(RowKernelPlan, RefusesWhatTheKernelDoesNotTake) {
  const auto supported = [](const mjp_test::UnetShape& shape, int ctas) {
    return Supported(shape, {ctas, mjp::row_kernel::kDeepRing});
  };
  EXPECT_TRUE(supported({"", {32, 64, 128}, 16, 5, 8, 1}, 2));
  EXPECT_TRUE(supported({"", {32, 64, 128}, 16, 5, 8, 1}, 4)) << "half a tile of channels";
  EXPECT_FALSE(supported({"", {32, 64, 128}, 16, 5, 8, 1}, 8)) << "a quarter";
  EXPECT_FALSE(supported({"", {48, 96}, 16, 5, 4, 1}, 2)) << "a tile and a half";
  EXPECT_FALSE(supported({"", {32, 64}, 64, 5, 8, 1}, 1)) << "64 positions";
  EXPECT_FALSE(supported({"", {24, 40}, 12, 3, 4, 1}, 1)) << "24 channels";
}

TEST(RowKernelPlan, TakesXOfUpTo1024Values) {
  const auto supported = [&](const char* gpu, int horizon, int action_dim) {
    return Supported({"", {32, 64}, horizon, 5, 8, 1, action_dim},
                     {1, mjp::row_kernel::kShallowRing}, gpu);
  };
  for (const char* gpu : {"h200", "a100"}) {
    EXPECT_TRUE(supported(gpu, 32, 14)) << gpu;
    EXPECT_TRUE(supported(gpu, 16, 64)) << gpu;
    EXPECT_FALSE(supported(gpu, 16, 65)) << gpu;
    EXPECT_FALSE(supported(gpu, 32, 33)) << gpu;
  }
  EXPECT_TRUE(supported("rtx4090", 16, 64));
  EXPECT_FALSE(supported("rtx4090", 32, 14)) << "more than 99 KiB of shared memory";
}

TEST(RowKernelPlan, AcrossClustersRefusesWhatTheKernelDoesNotTake) {
  EXPECT_TRUE(Supported({"", {128, 256}, 16, 5, 8, 1}, kAcrossClusters));
  EXPECT_FALSE(Supported({"", {64, 128}, 16, 5, 8, 1}, kAcrossClusters)) << "slices of 8 channels";
  EXPECT_FALSE(Supported({"", {128, 256}, 16, 5, 16, 1}, kAcrossClusters)) << "16 norm groups";
  EXPECT_FALSE(Supported({"", {384}, 16, 5, 8, 1}, kAcrossClusters)) << "groups of 48 channels";
  EXPECT_FALSE(Supported({"", {1024, 2048}, 32, 5, 8, 1}, kAcrossClusters)) << "4096 in a group";
  EXPECT_FALSE(Supported({"", {128}, 16, 5, 8, 1}, kAcrossClusters, "a100"));
  EXPECT_FALSE(Supported({"", {128}, 16, 5, 8, 1}, {4, mjp::row_kernel::kDeepRing, 8}));
}

TEST(RowKernelPlan, TakesClustersOfAPowerOfTwo) {
  const auto supported = [](int ctas) {
    return mjp::row_kernel::Plan({ctas, mjp::row_kernel::kDeepRing}, 2).Supported();
  };
  for (const int ctas : {1, 2, 4, 8}) EXPECT_TRUE(supported(ctas)) << ctas;
  for (const int ctas : {0, 3, 6, 16}) EXPECT_FALSE(supported(ctas)) << ctas;
}

}  // namespace
