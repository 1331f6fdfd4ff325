// Chunks whose beginning is known: what the chain sees of it, and what becomes of the rest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/policy.h"
#include "policy/prefix/chunk_timing.h"
#include "policy/sampler.h"
#include "policy/scheduler.h"
#include "tests/support/check_close.h"
#include "tests/support/goldens/golden_cases.h"

namespace {

using mjp::SamplerKind;
using testing::HasSubstr;

constexpr int kElements = 8;

class NoNoise : public mjp::NoiseSource {
 public:
  void Fill(int, float* noise) const override { std::fill_n(noise, kElements, 0.0f); }
};

// The exact network of data made of two points, p and -p, p = (0.6, ..., 0.6): tells epsilon.
class TwoPoints : public mjp::StepNetwork {
 public:
  explicit TwoPoints(std::vector<mjp::DenoiseStep> schedule) : schedule_(std::move(schedule)) {}

  void Evaluate(const float* x, const int* step, const int*, int rows, float* output) override {
    for (int r = 0; r < rows; ++r, x += kElements, output += kElements) {
      const mjp::DenoiseStep& s = schedule_[step[r]];
      inputs.emplace_back(x, x + kElements);
      double dot = 0;
      for (int i = 0; i < kElements; ++i) dot += 0.6 * x[i];
      const double side = std::tanh(dot * s.sqrt_a / (double{s.sqrt_1ma} * s.sqrt_1ma));
      for (int i = 0; i < kElements; ++i)
        output[i] = static_cast<float>((x[i] - s.sqrt_a * 0.6 * side) / s.sqrt_1ma);
    }
  }

  std::vector<std::vector<float>> inputs;

 private:
  std::vector<mjp::DenoiseStep> schedule_;
};

// The end of a chain from a start near -p, of which the first `held` elements are known to be 0.6.
std::vector<float> EndOf(SamplerKind kind, int held, std::vector<std::vector<float>>& inputs) {
  const auto schedule = mjp::MakeSchedule({}, kind, kind == SamplerKind::kDdpm ? 100 : 10);
  TwoPoints network(schedule);
  std::vector<float> x(kElements, -0.7f);
  const std::vector<float> clean(kElements, 0.6f);
  const NoNoise noise;
  mjp::MakeSequentialSampler(schedule, 1, kElements)
      ->Run(network, {1, x.data(), &noise, nullptr, {clean.data(), &held}});
  inputs = network.inputs;
  return x;
}

class HeldPrefixTest : public testing::TestWithParam<SamplerKind> {};

TEST_P(HeldPrefixTest, DecidesWhereTheRestGoes) {
  std::vector<std::vector<float>> inputs;
  EXPECT_TRUE(mjp_test::CheckClose(EndOf(GetParam(), 0, inputs),
                                   std::vector<float>(kElements, -0.6f), 0.02));
  EXPECT_TRUE(mjp_test::CheckClose(EndOf(GetParam(), 6, inputs),
                                   std::vector<float>(kElements, 0.6f), 0.02));
}

TEST_P(HeldPrefixTest, TheNetworkSeesItAsTheForwardProcessHasIt) {
  std::vector<std::vector<float>> inputs;
  EndOf(GetParam(), 3, inputs);
  const int steps = GetParam() == SamplerKind::kDdpm ? 100 : 10;
  const auto schedule = mjp::MakeSchedule({}, GetParam(), steps);
  ASSERT_EQ(inputs.size(), schedule.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    for (int i = 0; i < 3; ++i)
      EXPECT_FLOAT_EQ(inputs[k][i], 0.6f * schedule[k].sqrt_a - 0.7f * schedule[k].sqrt_1ma);
  }
}

TEST_P(HeldPrefixTest, ATrainedNetworkSeesItWithoutNoise) {
  const auto schedule = mjp::MakeSchedule({}, GetParam(), 10);
  TwoPoints network(schedule);
  std::vector<float> x(kElements, -0.7f);
  const std::vector<float> clean(kElements, 0.6f);
  const int held = 3;
  const NoNoise noise;
  mjp::MakeSequentialSampler(schedule, 1, kElements)
      ->Run(network, {1, x.data(), &noise, nullptr, {clean.data(), &held, true}});
  ASSERT_EQ(network.inputs.size(), schedule.size());
  for (const std::vector<float>& input : network.inputs) {
    for (int i = 0; i < held; ++i) EXPECT_EQ(input[i], 0.6f);
  }
  EXPECT_EQ(network.inputs[0][held], -0.7f);
}

// From noise towards -p, of which one element is known to be p's: too little to turn the chain. At
// the fourth step the plan is stronger than that noise.
TEST_P(HeldPrefixTest, AWarmStartRefinesThePlanBefore) {
  constexpr int kSteps = 10;
  const auto schedule = mjp::MakeSchedule({}, GetParam(), kSteps);
  const std::vector<float> plan(kElements, 0.6f);
  const int held = 1;
  const NoNoise noise;
  for (const int warm_start : {0, 4}) {
    TwoPoints network(schedule);
    std::vector<float> x(kElements, -0.3f);
    const mjp::HeldElements known{plan.data(), &held, false, warm_start};
    const int passes = mjp::MakeSequentialSampler(schedule, 1, kElements)
                           ->Run(network, {1, x.data(), &noise, nullptr, known});
    EXPECT_EQ(passes, kSteps - warm_start);
    ASSERT_EQ(network.inputs.size(), static_cast<size_t>(passes));
    std::vector<float> end(kElements, warm_start > 0 ? 0.6f : -0.6f);
    end[0] = 0.6f;
    EXPECT_TRUE(mjp_test::CheckClose(x, end, 0.02)) << warm_start;
    if (warm_start == 0) continue;
    const mjp::DenoiseStep& step = schedule[warm_start];
    for (const float input : network.inputs[0])
      EXPECT_FLOAT_EQ(input, 0.6f * step.sqrt_a - 0.3f * step.sqrt_1ma);
  }
}

// Beside a chunk that has none: both are what they are alone, bit for bit.
TEST_P(HeldPrefixTest, AWarmStartLeavesChunksWithoutAPlanAlone) {
  const auto schedule = mjp::MakeSchedule({}, GetParam(), 10);
  const std::vector<float> plan(2 * kElements, 0.6f);
  const auto end_of = [&](std::vector<int> held) {
    TwoPoints network(schedule);
    const int count = static_cast<int>(held.size());
    std::vector<float> x(held.size() * kElements, -0.7f);
    const NoNoise noise;
    mjp::MakeSequentialSampler(schedule, count, kElements)
        ->Run(network, {count, x.data(), &noise, nullptr, {plan.data(), held.data(), false, 4}});
    return x;
  };
  std::vector<float> both = end_of({2});
  const std::vector<float> alone = end_of({0});
  both.insert(both.end(), alone.begin(), alone.end());
  EXPECT_EQ(end_of({2, 0}), both);
}

INSTANTIATE_TEST_SUITE_P(Chains, HeldPrefixTest,
                         testing::Values(SamplerKind::kDdpm, SamplerKind::kDdim));

// Each number of a chunk says its moment, from the new observation on, and who made it.
TEST(CopyPlanTest, HasWhatIsExecutedAndThenTheNewestPlan) {
  mjp::PolicyConfig config;
  config.horizon = 16, config.n_obs_steps = 2, config.action_dim = 1;
  for (const int action_steps : {1, 3, 4}) {
    constexpr int kLatency = 4;
    std::vector<float> made;
    const auto chunk = [&](int ago) {
      made.clear();
      for (int row = 0; row < config.horizon; ++row)
        made.push_back(static_cast<float>(10 * (row - 1 - ago * action_steps) + ago));
      return std::span<const float>(made);
    };
    std::vector<float> plan(config.horizon);
    mjp::CopyPlan(config, kLatency, action_steps, chunk, plan);
    for (int moment = 0; moment + action_steps < config.horizon - 1; ++moment) {
      int ago = 1;  // the newest decision that acts by then
      while (moment < kLatency && moment + ago * action_steps < kLatency) ++ago;
      EXPECT_EQ(plan[moment + 1], 10 * moment + ago) << action_steps << ", moment " << moment;
    }
  }
}

// The tiny state policy on observations of `count` environments, each with its own prefix.
class PrefixedPolicy {
 public:
  std::vector<float> Actions(int count, bool prefix, std::vector<int> steps) {
    mjp::PolicyOptions options;
    options.backend = mjp::Backend::kCpu;
    options.sampler = {SamplerKind::kDdim, 5};
    options.sampler.prefix = prefix;
    options.batch = 3;
    const auto policy = mjp::Policy::Create(checkpoint_, options);
    const mjp::PolicyConfig& config = policy->config();
    std::vector<float> state, environment, known;
    std::vector<mjp::NoiseKey> keys;
    for (int n = 0; n < count; ++n) {
      state.insert(state.end(), config.n_obs_steps * config.state_dim, 100.0f + 30 * n);
      environment.insert(environment.end(), config.n_obs_steps * config.environment_dim, 200.0f);
      keys.push_back({5u + n, 0});
      for (int i = 0; i < config.horizon * config.action_dim; ++i)
        known.push_back(static_cast<float>(150 + 10 * n + i));
    }
    mjp::PolicyInput input;
    input.count = count;
    input.state = state, input.environment = environment, input.keys = keys;
    if (!steps.empty()) input.prefix = known, input.prefix_steps = steps;
    mjp::PolicyOutput output;
    policy->Infer(input, output);
    return output.actions;
  }

  std::string Refusal(bool prefix, const std::vector<int>& steps) {
    try {
      Actions(1, prefix, steps);
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
      return error.what();
    }
    return "";
  }

  size_t action_dim() const { return checkpoint_->config.action_dim; }
  size_t chunk() const { return checkpoint_->config.horizon * action_dim(); }

 private:
  std::shared_ptr<const mjp::Checkpoint> checkpoint_ = mjp_test::TinyStateCheckpoint();
};

TEST(PolicyPrefixTest, ChunksBeginWithTheirPrefixAndTheRestFollowsIt) {
  PrefixedPolicy policy;
  const std::vector<float> free = policy.Actions(1, false, {}), held = policy.Actions(1, true, {4});
  for (size_t i = 0; i < 4 * policy.action_dim(); ++i)
    EXPECT_NEAR(held[i], 150 + static_cast<double>(i), 1e-3);
  for (size_t i = 4 * policy.action_dim(); i < policy.chunk(); ++i) EXPECT_NE(held[i], free[i]);
}

TEST(PolicyPrefixTest, NoneIsThePlainChainBitForBit) {
  PrefixedPolicy policy;
  const std::vector<float> plain = policy.Actions(2, false, {});
  EXPECT_EQ(policy.Actions(2, true, {}), plain);
  EXPECT_EQ(policy.Actions(2, true, {0, 0}), plain);
}

TEST(PolicyPrefixTest, NeighboursDoNotChangeABit) {
  PrefixedPolicy policy;
  const std::vector<float> all = policy.Actions(3, true, {2, 0, 5});
  const std::vector<float> alone = policy.Actions(1, true, {2});
  EXPECT_EQ(std::vector<float>(all.begin(), all.begin() + alone.size()), alone);
}

TEST(PolicyPrefixTest, RefusesWhatDoesNotFit) {
  PrefixedPolicy policy;
  EXPECT_THAT(policy.Refusal(false, {2}), HasSubstr("made without"));
  EXPECT_THAT(policy.Refusal(true, {17}), HasSubstr("prefix_steps[0] is 17"));
  EXPECT_THAT(policy.Refusal(true, {-1}), HasSubstr("prefix_steps[0] is -1"));
  EXPECT_THAT(policy.Refusal(true, {1, 1}), HasSubstr("prefix_steps has 2"));
  mjp::SamplerOptions sampler;
  sampler.prefix = true;
  sampler.parallel_window = 8;
  EXPECT_THROW(mjp::ResolveSampler(sampler, *mjp_test::TinyStateCheckpoint()), mjp::Error);
  sampler.parallel_window = mjp::kAutoWindow;
  EXPECT_EQ(mjp::ResolveSampler(sampler, *mjp_test::TinyStateCheckpoint()).parallel_window, 0);
  sampler.steps = 5, sampler.warm_start = 5;  // nothing would be left of the chain
  EXPECT_THROW(mjp::ResolveSampler(sampler, *mjp_test::TinyStateCheckpoint()), mjp::Error);
  sampler.warm_start = 4;
  EXPECT_EQ(mjp::ResolveSampler(sampler, *mjp_test::TinyStateCheckpoint()).warm_start, 4);
  EXPECT_EQ(mjp::ResolveSampler(sampler, *mjp_test::TinyStateCheckpoint()).hold_noise, 1);
  sampler.hold_noise = 2;  // the noise belongs to moments
  EXPECT_THROW(mjp::ResolveSampler(sampler, *mjp_test::TinyStateCheckpoint()), mjp::Error);
  sampler.hold_noise = 0;
  sampler.prefix = false;  // no plan is known
  EXPECT_THROW(mjp::ResolveSampler(sampler, *mjp_test::TinyStateCheckpoint()), mjp::Error);
}

}  // namespace
