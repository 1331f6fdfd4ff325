#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "policy/policy.h"
#include "policy/random_checkpoint.h"
#include "tests/support/device_buffer.h"

namespace {

using dp::FlatScene;

// The same observation for every environment of a batch.
struct Observations {
  explicit Observations(int count)
      : scenes(2 * count, FlatScene{100, 150, 250, 300, 0.5f}),
        state(4 * count, 200.0f),
        keys(count, {7, 3}) {
    input.count = count;
    input.scenes = scenes;
    input.state = state;
    input.keys = keys;
  }
  std::vector<FlatScene> scenes;
  std::vector<float> state;
  std::vector<dp::NoiseKey> keys;
  dp::PolicyInput input;
};

std::unique_ptr<dp::Policy> MakePolicy(int batch,
                                       dp::TimingDetail timing = dp::TimingDetail::kStages,
                                       int window = 0, int hold_noise = 1) {
  static const auto checkpoint = dp::NamedNetwork("lerobot-128");
  dp::PolicyOptions options;
  options.backend = dp::Backend::kCuda;
  options.precision = dp::Precision::kFp16;
  options.sampler = {dp::SamplerKind::kDdim, 4};
  options.sampler.parallel_window = window;
  options.sampler.hold_noise = hold_noise;
  options.batch = batch;
  options.timing = timing;
  return dp::Policy::Create(checkpoint, options);
}

std::vector<float> Decide(dp::Policy& policy, int count) {
  const Observations observations(count);
  dp::PolicyOutput output;
  policy.Infer(observations.input, output);
  return output.actions;
}

constexpr int kBatch = 120;  // wide convolutions

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
  dp::PolicyOptions options;
  options.backend = dp::Backend::kCuda;
  options.precision = dp::Precision::kFp16;
  options.sampler = {dp::SamplerKind::kDdim, 4};
  options.sampler.parallel_window = 0;
  options.batch = kRows;
  const auto policy = dp::Policy::Create(dp::NamedNetwork("notebook"), options);
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
    const auto policy = MakePolicy(1, dp::TimingDetail::kStages, 0, hold_noise);
    observations.keys[0].decision = decision;
    dp::PolicyOutput output;
    policy->Infer(observations.input, output);
    return output.actions;
  };
  EXPECT_EQ(decide(3, 5), decide(1, 1));
  EXPECT_NE(decide(3, 5), decide(1, 5));
}

TEST(CudaBatch, AgreesWithOneEnvironmentAlone) {
  DEVICE_OR_SKIP();
  const std::vector<float> alone = Decide(*MakePolicy(1), 1);
  const std::vector<float> full = Decide(*MakePolicy(kBatch), kBatch);
  // other kernels, so other roundings: half precision over a chain of four steps, in pixels
  for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(full[i], alone[i], 5.0) << "number " << i;
}

TEST(CudaBatch, TimingChangesNoBit) {
  DEVICE_OR_SKIP();
  for (const int window : {0, 2}) {
    const std::vector<float> expected = Decide(*MakePolicy(2, dp::TimingDetail::kNone, window), 2);
    const auto policy = MakePolicy(2, dp::TimingDetail::kSteps, window);
    const Observations observations(2);
    dp::PolicyOutput output;
    policy->Infer(observations.input, output);
    EXPECT_EQ(output.actions, expected);
    const dp::StageTimes::Span& denoise = output.times[dp::Stage::kDenoise];
    ASSERT_EQ(output.times.steps.size(), static_cast<size_t>(output.times.passes));
    double at = denoise.begin;
    for (const auto& step : output.times.steps) {
      EXPECT_GE(step.begin, at);
      EXPECT_GT(step.end, step.begin);
      at = step.end;
    }
    // two clocks, both of the device: events and the global timer
    EXPECT_NEAR(at, denoise.end, 50e-6);
  }
}

TEST(CudaBatch, WindowOfItsOwnChoiceIsResolved) {
  DEVICE_OR_SKIP();
  constexpr int kSteps = 4;  // too few for a window to pay
  const auto policy = MakePolicy(1, dp::TimingDetail::kStages, dp::kAutoWindow);
  ASSERT_EQ(policy->options().sampler.steps, kSteps);
  EXPECT_EQ(policy->options().sampler.parallel_window, 0);
  EXPECT_EQ(Decide(*policy, 1), Decide(*MakePolicy(1), 1));
}

TEST(CudaBatch, TwoHalvesMakeADecision) {
  DEVICE_OR_SKIP();
  const auto policy = MakePolicy(kBatch);
  const std::vector<float> expected = Decide(*policy, kBatch);
  dp::PolicyOutput output;
  {
    const Observations observations(kBatch);  // gone before Wait
    policy->Launch(observations.input, output);
  }
  policy->Wait();
  EXPECT_EQ(output.actions, expected);
  policy->Wait();  // nothing is under way
}

}  // namespace
