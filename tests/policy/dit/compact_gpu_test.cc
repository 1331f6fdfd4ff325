#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/self_check.h"
#include "tests/policy/dit/compact_dit.h"
#include "tests/support/guarded_features.h"

// dit_compact on the GPU against the CPU, whose passes are compared with double precision.

namespace {

using mjp::DitConfig;
using mjp::DitObjective;
using mjp::Precision;
using mjp_test::CompactDit;
using mjp_test::CompactDitConfig;
using mjp_test::RandomFloats;

class CudaCompactDit : public testing::TestWithParam<std::tuple<DitObjective, Precision>> {
 protected:
  void SetUp() override {
    std::string why;
    if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  }
};

std::vector<float> Actions(const std::shared_ptr<const mjp::Checkpoint>& checkpoint,
                           const mjp::PolicyOptions& options, int count) {
  const mjp::PolicyConfig& config = checkpoint->config;
  std::vector<uint8_t> frames;
  const size_t camera = size_t{3} * config.cameras[0].height * config.cameras[0].width;
  for (const float v : RandomFloats(camera * config.cameras.size() * config.n_obs_steps * count, 7))
    frames.push_back(static_cast<uint8_t>(127.5f * (v + 1)));
  const auto state = RandomFloats(size_t{1} * count * config.n_obs_steps * config.state_dim, 8);
  std::vector<mjp::NoiseKey> keys;
  for (int n = 0; n < count; ++n) keys.push_back({static_cast<uint64_t>(n), 3});
  mjp::PolicyInput input;
  input.count = count;
  input.frames = frames, input.state = state, input.keys = keys;
  mjp::PolicyOutput output;
  mjp::Policy::Create(checkpoint, options)->Infer(input, output);
  return output.actions;
}

TEST_P(CudaCompactDit, AgreesWithTheCpu) {
  const auto [objective, precision] = GetParam();
  for (const int cameras : {1, 2}) {
    const auto checkpoint = CompactDit(CompactDitConfig(objective, cameras));
    for (const int window : {0, 4}) {
      mjp::PolicyOptions options;
      options.self_check = false;  // the test is the check
      options.precision = precision;
      options.batch = 5;
      options.sampler.parallel_window = window;
      options.sampler = mjp::ResolveSampler(options.sampler, *checkpoint);
      options.backend = mjp::Backend::kCuda;
      const auto on_gpu = Actions(checkpoint, options, 5);
      options.backend = mjp::Backend::kCpu;
      options.precision = Precision::kAuto;
      const auto on_cpu = Actions(checkpoint, options, 5);
      ASSERT_EQ(on_gpu.size(), on_cpu.size());
      const double limit = precision == Precision::kFp32   ? 1e-3
                           : precision == Precision::kBf16 ? 2e-1
                                                           : 4e-2;
      for (size_t i = 0; i < on_cpu.size(); ++i)
        ASSERT_NEAR(on_gpu[i], on_cpu[i], limit * (1 + std::abs(on_cpu[i])))
            << cameras << " cameras, window " << window << ", value " << i;
    }
  }
}

TEST_P(CudaCompactDit, TheSelfCheckPassesAndABatchChangesNoBit) {
  const auto [objective, precision] = GetParam();
  const auto checkpoint = CompactDit(CompactDitConfig(objective));
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  options.precision = precision;
  options.batch = 3;
  options.sampler = mjp::ResolveSampler({}, *checkpoint);
  const mjp::SelfCheck check = mjp::RunSelfCheck(checkpoint, options);
  EXPECT_TRUE(check.Passed()) << check.error << " above " << check.limit;
  const auto three = Actions(checkpoint, options, 3), again = Actions(checkpoint, options, 3);
  EXPECT_EQ(three, again);
  const auto two = Actions(checkpoint, options, 2);
  for (size_t i = 0; i < three.size() / 3; ++i) ASSERT_EQ(two[i], three[i]);
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaCompactDit,
    testing::Combine(testing::Values(DitObjective::kDiffusion, DitObjective::kFlowMatching),
                     testing::Values(Precision::kFp32, Precision::kFp16, Precision::kBf16)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param) == DitObjective::kDiffusion ? "diffusion"
                                                                             : "flow") +
             std::to_string(static_cast<int>(std::get<1>(info.param)));
    });

}  // namespace
