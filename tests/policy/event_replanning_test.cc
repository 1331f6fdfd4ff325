#include "policy/prefix/event_replanning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace mjp_test {
namespace {

constexpr int kHorizon = 16, kActions = 2;

mjp::PolicyConfig Config() {
  mjp::PolicyConfig config;
  config.horizon = kHorizon;
  config.n_obs_steps = 2;
  config.n_action_steps = 8;
  config.action_dim = kActions;
  return config;
}

// A chunk of the decision at `step` that says of each moment what all such chunks say.
std::vector<float> ChunkOf(int step) {
  std::vector<float> chunk;
  for (int row = 0; row < kHorizon; ++row)
    for (int c = 0; c < kActions; ++c) chunk.push_back(10.0f * (step + row) + c);
  return chunk;
}

TEST(EventReplanningTest, FollowsAChunkToItsEndWhereTheNewOnesAgree) {
  for (const int action_steps : {1, 2, 3}) {
    for (const int latency : {0, 4, 9}) {
      const mjp::EventReplanning replanning(Config(), {.beyond = 1}, action_steps, latency);
      const int most = std::min(8, kHorizon - 1 - latency);
      std::vector<float> before;
      int age = -1, step = 0;
      for (int decision = 0; decision < 20; ++decision, step += action_steps) {
        std::vector<float> chunk = ChunkOf(step);
        for (float& number : chunk) number += 0.01f * decision;  // says who made it
        const int expected =
            age < 0 || age + action_steps >= most ? 0 : age + action_steps;  // from the definition
        const int maker = decision - expected / action_steps;
        age = replanning.Choose(before, age, chunk);
        ASSERT_EQ(age, expected) << action_steps << " " << latency << " " << decision;
        const int acts = 1 + latency;
        for (int row = acts; row < acts + action_steps && row + age < kHorizon; ++row) {
          ASSERT_NEAR(chunk[kActions * row], 10.0f * (step + row) + 0.01f * maker, 1e-4)
              << action_steps << " " << latency << " " << decision << " row " << row;
        }
        before = chunk;
      }
    }
  }
}

// Of who gives nothing the checkpoint's; action steps alone are without a rule.
TEST(EventReplanningTest, TheRuleIsTheCheckpointsUnlessAnotherIsGiven) {
  mjp::PolicyConfig config = Config();
  EXPECT_EQ(config.DecisionSteps(), 8);
  EXPECT_EQ(mjp::ResolveRule(config, 0, {}, 0).beyond, 0);
  config.replan_every = 2;
  config.replan_beyond = 30;
  EXPECT_EQ(config.DecisionSteps(), 2);
  EXPECT_EQ(mjp::ResolveRule(config, 0, {}, 0).beyond, 30);
  EXPECT_EQ(mjp::ResolveRule(config, 0, {}, 4).after, 4);
  EXPECT_EQ(mjp::ResolveRule(config, 1, {}, 0).beyond, 0);
  EXPECT_EQ(mjp::ResolveRule(config, 1, 5.0, 0).beyond, 5);
  EXPECT_EQ(mjp::ResolveRule(config, 0, 0.0, 0).beyond, 0);
}

TEST(EventReplanningTest, TakesTheNewChunkAfterAsManyStepsAsWereAskedFor) {
  for (const int after : {2, 4, 11}) {
    const mjp::EventReplanning replanning(Config(), {1e9, after}, 1, 4);
    std::vector<float> before = ChunkOf(0);
    int age = 0;
    for (int step = 1; step < 30; ++step) {
      std::vector<float> chunk = ChunkOf(step);
      age = replanning.Choose(before, age, chunk);
      EXPECT_EQ(age, step % after) << after << " " << step;
      before = chunk;
    }
  }
}

TEST(EventReplanningTest, TakesTheNewChunkWhereAnActionOfTheRestDeparts) {
  constexpr double kBeyond = 5;
  constexpr int kAge = 2, kLatency = 3, kFirst = 1 + kLatency;  // row that acts first
  const mjp::EventReplanning replanning(Config(), {kBeyond}, 1, kLatency);
  const std::vector<float> before = ChunkOf(0);
  for (int row = 0; row < kHorizon; ++row) {
    // 8 actions at most, of which 3 are over when the new chunk would act
    const bool counts = row >= kFirst && row < kFirst + 8 - (kAge + 1);
    for (const double size : {4.9, 5.1, std::numeric_limits<double>::quiet_NaN()}) {
      std::vector<float> chunk = ChunkOf(1);
      chunk[kActions * row] += static_cast<float>(0.6 * size);
      chunk[kActions * row + 1] -= static_cast<float>(0.8 * size);
      const std::vector<float> made = chunk;
      const int age = replanning.Choose(before, kAge, chunk);
      if (counts && !(size < kBeyond)) {
        EXPECT_EQ(age, 0) << row << " " << size;
        // the bits: NaN equals nothing
        EXPECT_EQ(std::memcmp(chunk.data(), made.data(), made.size() * sizeof(float)), 0) << row;
      } else {
        EXPECT_EQ(age, kAge + 1) << row << " " << size;
        for (int i = 0; i + kActions < kHorizon * kActions; ++i)
          EXPECT_EQ(chunk[i], before[i + kActions]) << row << " " << i;
      }
    }
  }
}

TEST(EventReplanningTest, IsRefusedWhereNothingCanBeFollowed) {
  const auto refusal = [](const mjp::PolicyConfig& config, int action_steps, int latency,
                          int after = 0) {
    try {
      mjp::ReplanningOf(config, {12, after}, action_steps, latency, "--x", mjp::ExitCode::kUsage);
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(Config(), 1, 0), "");
  EXPECT_EQ(refusal(Config(), 7, 7), "");
  EXPECT_EQ(refusal(Config(), 8, 0).find("--x: a chunk is followed for 8 control steps"), 0u);
  EXPECT_EQ(refusal(Config(), 1, 14).find("--x: a chunk is followed for 1 control steps"), 0u);
  mjp::PolicyConfig ensembles = Config();
  ensembles.temporal_ensemble = 0.01;
  EXPECT_EQ(refusal(ensembles, 1, 0).find("--x: this checkpoint ensembles"), 0u);
  EXPECT_FALSE(mjp::ReplanningOf(ensembles, {}, 1, 0, "--x", mjp::ExitCode::kUsage));
  EXPECT_EQ(refusal(Config(), 4, 4, 5), "");
  EXPECT_EQ(refusal(Config(), 4, 4, 4).find("--x: a chunk is followed for 4 control steps"), 0u);
  EXPECT_THROW(mjp::ReplanningOf(Config(), {0, 4}, 1, 0, "--x", mjp::ExitCode::kUsage), mjp::Error)
      << "how far is not said";
}

}  // namespace
}  // namespace mjp_test
