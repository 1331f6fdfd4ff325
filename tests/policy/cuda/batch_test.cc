#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/execution_plan.h"
#include "policy/policy.h"
#include "policy/unet/unet_model.h"
#include "tests/support/check_close.h"
#include "tests/support/gpu/device_buffer.h"
#include "tests/support/gpu/observations.h"

namespace {

using mjp_test::Observations;

std::unique_ptr<mjp::Policy> MakePolicy(int batch,
                                        mjp::TimingDetail timing = mjp::TimingDetail::kStages,
                                        int window = 0, int hold_noise = 1) {
  static const auto checkpoint = mjp::NamedNetwork("lerobot-128");
  mjp::PolicyOptions options;
  options.self_check = false;  // the test is the check
  options.backend = mjp::Backend::kCuda;
  options.precision = mjp::Precision::kFp16;
  options.sampler = {mjp::SamplerKind::kDdim, 4};
  options.sampler.parallel_window = window;
  options.sampler.hold_noise = hold_noise;
  options.batch = batch;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  options.timing = timing;
  return mjp::Policy::Create(checkpoint, options);
}

std::vector<float> Decide(mjp::Policy& policy, int count) {
  const Observations observations(count);
  mjp::PolicyOutput output;
  policy.Infer(observations.input, output);
  return output.actions;
}

constexpr int kBatch = 120;  // convolutions by wgmma

TEST(CudaBatch, PlaceAndNeighboursDoNotMatter) {
  DEVICE_OR_SKIP();
  const auto policy = MakePolicy(kBatch);
  const std::vector<float> full = Decide(*policy, kBatch);
  const size_t size = full.size() / kBatch;
  for (int i = 1; i < kBatch; ++i) {
    EXPECT_TRUE(std::equal(full.begin(), full.begin() + size, full.begin() + i * size))
        << "environment " << i;
  }
  const std::vector<float> few = Decide(*policy, 3);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), full.begin()));
}

// The last of several launches has fewer rows than the others.
TEST(CudaBatch, LaunchesDoNotMatter) {
  DEVICE_OR_SKIP();
  constexpr int kRows = 33;
  mjp::PolicyOptions options;
  options.self_check = false;  // the test is the check
  options.backend = mjp::Backend::kCuda;
  options.precision = mjp::Precision::kFp16;
  options.sampler = {mjp::SamplerKind::kDdim, 4};
  options.sampler.parallel_window = 0;
  options.batch = kRows;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  const auto policy = mjp::Policy::Create(mjp::NamedNetwork("notebook"), options);
  const std::vector<float> full = Decide(*policy, kRows);
  const size_t size = full.size() / kRows;
  for (int i = 1; i < kRows; ++i) {
    EXPECT_TRUE(std::equal(full.begin(), full.begin() + size, full.begin() + i * size))
        << "environment " << i;
  }
}

TEST(CudaBatch, DecisionsInARowShareTheNoise) {
  DEVICE_OR_SKIP();
  Observations observations(1);
  const auto decide = [&](int hold_noise, uint32_t decision) {
    const auto policy = MakePolicy(1, mjp::TimingDetail::kStages, 0, hold_noise);
    observations.keys[0].decision = decision;
    mjp::PolicyOutput output;
    policy->Infer(observations.input, output);
    return output.actions;
  };
  EXPECT_EQ(decide(3, 5), decide(1, 1));
  EXPECT_NE(decide(3, 5), decide(1, 5));
}

TEST(CudaBatch, TheTemperatureScalesTheNoise) {
  DEVICE_OR_SKIP();
  const auto checkpoint = mjp::NamedNetwork("lerobot-128");
  const mjp_test::Observations observations(1);
  mjp::PolicyOptions options;
  options.self_check = false;  // the test is the check
  options.sampler = {mjp::SamplerKind::kDdpm, 4};
  options.sampler.parallel_window = 0;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  const auto decide = [&](mjp::Backend backend, float temperature) {
    options.backend = backend;
    options.precision =
        backend == mjp::Backend::kCuda ? mjp::Precision::kFp32 : mjp::Precision::kAuto;
    options.sampler.temperature = temperature;
    mjp::PolicyOutput output;
    mjp::Policy::Create(checkpoint, options)->Infer(observations.input, output);
    return output.actions;
  };
  const std::vector<float> gpu = decide(mjp::Backend::kCuda, 0.5f);
  EXPECT_TRUE(mjp_test::CheckClose(gpu, decide(mjp::Backend::kCpu, 0.5f), 0.05));
  EXPECT_FALSE(mjp_test::CheckClose(gpu, decide(mjp::Backend::kCpu, 1), 1));
}

TEST(CudaBatch, AgreesWithOneEnvironmentAlone) {
  DEVICE_OR_SKIP();
  const std::vector<float> alone = Decide(*MakePolicy(1), 1);
  const std::vector<float> full = Decide(*MakePolicy(kBatch), kBatch);
  // other kernels, so other roundings: half precision over a chain of four steps, in pixels
  for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(full[i], alone[i], 5.0) << "value " << i;
}

// Every pass has its time, one behind the other; without a trace the last one ends the denoising.
void ExpectPassesInOrder(mjp::StageTimes& times, bool trace = false) {
  const mjp::StageTimes::Span& denoise = times[mjp::Stage::kDenoise];
  ASSERT_EQ(times.steps.size(), static_cast<size_t>(times.passes));
  double at = denoise.begin;
  for (const auto& step : times.steps) {
    EXPECT_GE(step.begin, at);
    EXPECT_GT(step.end, step.begin);
    at = step.end;
  }
  // two clocks, both of the device: events and the global timer
  if (!trace) {
    EXPECT_NEAR(at, denoise.end, 50e-6);
  }
}

TEST(CudaBatch, TimingChangesNoBit) {
  DEVICE_OR_SKIP();
  for (const int window : {0, 2}) {
    const std::vector<float> expected = Decide(*MakePolicy(2, mjp::TimingDetail::kNone, window), 2);
    const auto policy = MakePolicy(2, mjp::TimingDetail::kSteps, window);
    const mjp_test::Observations observations(2);
    mjp::PolicyOutput output;
    policy->Infer(observations.input, output);
    EXPECT_EQ(output.actions, expected);
    ExpectPassesInOrder(output.times);
  }
}

TEST(CudaBatch, WindowOfItsOwnChoiceIsResolved) {
  DEVICE_OR_SKIP();
  constexpr int kSteps = 4;  // too few for a window to pay
  const auto policy = MakePolicy(1, mjp::TimingDetail::kStages, mjp::kAutoWindow);
  ASSERT_EQ(policy->options().sampler.steps, kSteps);
  EXPECT_EQ(policy->options().sampler.parallel_window, 0);
  EXPECT_EQ(Decide(*policy, 1), Decide(*MakePolicy(1), 1));
}

// In one launch of at most 32 rows; beyond, the plain chain takes less.
TEST(CudaBatch, WindowOfItsOwnChoiceIsTheFaster) {
  DEVICE_OR_SKIP();
  const auto checkpoint = mjp::NamedNetwork("notebook");
  mjp::PolicyOptions options;
  options.self_check = false;  // the test is the check
  options.backend = mjp::Backend::kCuda;
  options.precision = mjp::Precision::kFp16;
  const mjp::ExecutionPlan two_rows = mjp::ChooseExecution(
      mjp::UnetOf(*checkpoint).config, {mjp::Format::kFp16, 2}, mjp::GpuTraits::Current());
  if (two_rows.FormName() != std::string("megakernel, warp-specialised"))
    GTEST_SKIP() << "this device runs it as " << two_rows.FormName();
  const std::pair<int, int> windows[] = {{1, 16}, {2, 16}, {4, 8}, {5, 0}, {32, 0}};
  for (const auto& [batch, window] : windows) {
    options.batch = batch;
    options.scene_drawer = &mjp::FlatSceneDrawer();
    EXPECT_EQ(mjp::Policy::Create(checkpoint, options)->options().sampler.parallel_window, window)
        << batch << " environments";
  }
}

TEST(CudaBatch, TwoHalvesMakeADecision) {
  DEVICE_OR_SKIP();
  const auto policy = MakePolicy(kBatch);
  const std::vector<float> expected = Decide(*policy, kBatch);
  mjp::PolicyOutput output;
  {
    const mjp_test::Observations observations(kBatch);  // gone before Wait
    policy->Launch(observations.input, output);
  }
  policy->Wait();
  EXPECT_EQ(output.actions, expected);
  policy->Wait();  // nothing is under way
}

// A batch that two launches share, the second one with a single row.
struct Shared {
  const char* name;
  std::vector<int> down_dims;
  int rows;
};

class CudaLaunches : public testing::TestWithParam<Shared> {
 protected:
  static constexpr int kSteps = 5;

  void SetUp() override {
    DEVICE_OR_SKIP();
    mjp::UnetPolicyConfig config;
    config.type = "diffusion";
    config.state_dim = kStateDim, config.environment_dim = kEnvironmentDim, config.action_dim = 2;
    config.unet.down_dims = GetParam().down_dims;
    config.unet.step_embed_dim = 16;
    const auto range = [](int dim, float most) {
      return mjp::FeatureStats{mjp::Normalization::kMinMax, std::vector<float>(dim, -most),
                               std::vector<float>(dim, most)};
    };
    mjp::NormalizerStats stats;
    stats.state = range(kStateDim, 512);
    stats.environment = range(kEnvironmentDim, 512);
    stats.action = range(config.action_dim, 1);  // as the network gives them
    checkpoint_ = mjp::RandomCheckpoint(config, stats, 5);
    observation_steps_ = config.n_obs_steps;
  }

  std::unique_ptr<mjp::Policy> Make(mjp::Backend backend,
                                    mjp::TimingDetail timing = mjp::TimingDetail::kStages) const {
    mjp::PolicyOptions options;
    options.self_check = false;  // the test is the check
    options.backend = backend;
    options.precision =
        backend == mjp::Backend::kCpu ? mjp::Precision::kFp32 : mjp::Precision::kFp16;
    options.sampler = {mjp::SamplerKind::kDdpm, kSteps};  // with noise in every step but the last
    options.sampler.parallel_window = 0;
    options.batch = GetParam().rows;
    options.threads = 4;
    options.timing = timing;
    return mjp::Policy::Create(checkpoint_, options);
  }

  // Decides for environments that differ in what they see and in their noise. The actions are in
  // the environments' order, which need not be the batch's.
  std::vector<float> Decide(mjp::Policy& policy, bool backwards, mjp::PolicyOutput& output) const {
    const int rows = GetParam().rows;
    std::vector<float> state, environment;
    std::vector<mjp::NoiseKey> keys;
    for (int row = 0; row < rows; ++row) {
      const int i = backwards ? rows - 1 - row : row;
      keys.push_back({1000u + i, 2});
      for (int k = 0; k < observation_steps_ * kStateDim; ++k)
        state.push_back(static_cast<float>((20 + 37 * i + 9 * k) % 400));
      for (int k = 0; k < observation_steps_ * kEnvironmentDim; ++k)
        environment.push_back(static_cast<float>((30 + 53 * i + 5 * k) % 400));
    }
    mjp::PolicyInput input;
    input.count = rows;
    input.state = state;
    input.environment = environment;
    input.keys = keys;
    policy.Infer(input, output);
    std::vector<float> actions = output.actions;
    const size_t size = actions.size() / rows;
    for (int row = 0; backwards && row < rows; ++row)
      std::copy_n(output.actions.begin() + row * size, size, actions.end() - (row + 1) * size);
    return actions;
  }
  std::vector<float> Decide(mjp::Policy& policy, bool backwards = false) const {
    mjp::PolicyOutput output;
    return Decide(policy, backwards, output);
  }

 private:
  static constexpr int kStateDim = 3, kEnvironmentDim = 5;
  std::shared_ptr<const mjp::Checkpoint> checkpoint_;
  int observation_steps_ = 0;
};

TEST_P(CudaLaunches, RowsHaveTheirOwnNoise) {
  const auto policy = Make(mjp::Backend::kCuda);
  const std::vector<float> forwards = Decide(*policy);
  EXPECT_EQ(Decide(*policy, true), forwards);
  const std::vector<float> expected = Decide(*Make(mjp::Backend::kCpu));
  ASSERT_EQ(forwards.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    worst = std::max<double>(worst, std::abs(forwards[i] - expected[i]));
  std::printf("    %s: %.2g\n", GetParam().name, worst);
  EXPECT_LE(worst, 2e-2);  // docs/NUMERICS.md: fp16 over few steps
}

TEST_P(CudaLaunches, EachIsTimed) {
  const std::vector<float> expected = Decide(*Make(mjp::Backend::kCuda));
  const auto policy = Make(mjp::Backend::kCuda, mjp::TimingDetail::kSteps);
  mjp::PolicyOutput output;
  EXPECT_EQ(Decide(*policy, false, output), expected);
  const mjp::ExecutionPlan plan =
      mjp::ChooseExecution(mjp::UnetOf(policy->checkpoint()).config, policy->options());
  EXPECT_EQ(output.times.passes, plan.Launches() * kSteps);
  ExpectPassesInOrder(output.times);
  mjp::PolicyTrace trace;  // a launch for each step
  output.trace = &trace;
  EXPECT_EQ(Decide(*policy, false, output), expected);
  ExpectPassesInOrder(output.times, true);
}

const Shared kShared[] = {{"warp-specialised", {256, 512, 1024}, 33},
                          {"not warp-specialised", {512, 1024, 2048}, 17}};
INSTANTIATE_TEST_SUITE_P(All, CudaLaunches, testing::ValuesIn(kShared), [](const auto& info) {
  return info.index == 0 ? "WarpSpecialised" : "NotWarpSpecialised";
});

}  // namespace
