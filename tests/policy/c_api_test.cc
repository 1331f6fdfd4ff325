#include "policy/c_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/policy.h"
#include "tests/support/child.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace {

class CApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = folder_ / "policy";
    mjp_test::WriteSmallCheckpoint(directory_);
    options_.backend = "cpu";
    options_.sampler = "ddim";
    options_.steps = 3;
    options_.batch = 2;
  }
  // Observations of two environments.
  void Observe(const mjp_shape& shape) {
    pictures_.resize(2 * shape.observation_steps * shape.picture_bytes);
    for (size_t i = 0; i < pictures_.size(); ++i) pictures_[i] = static_cast<uint8_t>(i * 7);
    for (int i = 0; i < 2 * shape.observation_steps * shape.state_dim; ++i) {
      state_.push_back(100.0f + i);
    }
    observation_ = {
        sizeof(observation_), 2, pictures_.data(), state_.data(), nullptr, seeds_, decisions_};
  }

  static bool Said(const char* text) {
    return std::string(mjp_last_error()).find(text) != std::string::npos;
  }

  mjp_test::TempDir folder_;
  std::string directory_;
  mjp_options options_ = MJP_OPTIONS;
  std::vector<uint8_t> pictures_;
  std::vector<float> state_;
  uint64_t seeds_[2] = {5, 6};
  uint32_t decisions_[2] = {0, 3};
  mjp_observation observation_ = MJP_OBSERVATION;
};

TEST_F(CApiTest, GivesTheActionsOfThePolicyBitForBit) {
  mjp_policy* policy = mjp_load(directory_.c_str(), &options_);
  ASSERT_NE(policy, nullptr) << mjp_last_error();
  mjp_shape shape = MJP_SHAPE;
  ASSERT_EQ(mjp_describe(policy, &shape), 0);
  Observe(shape);
  std::vector<float> actions(2 * shape.horizon * shape.action_dim);
  ASSERT_EQ(mjp_infer(policy, &observation_, actions.data(), actions.size()), 0)
      << mjp_last_error();
  mjp_free(policy);

  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.sampler = {mjp::SamplerKind::kDdim, 3, 0, 0};
  options.batch = 2;
  const auto direct = mjp::Policy::Create(mjp::LoadCheckpoint(directory_), options);
  const std::vector<mjp::NoiseKey> keys = {{5, 0}, {6, 3}};
  mjp::PolicyInput input;
  input.count = 2;
  input.frames = pictures_;
  input.state = state_;
  input.keys = keys;
  mjp::PolicyOutput output;
  direct->Infer(input, output);
  EXPECT_EQ(actions, output.actions);
}

TEST_F(CApiTest, NamesItsFeaturesWithSizesAndRanges) {
  EXPECT_EQ(mjp_abi_version(), MJP_ABI_VERSION);
  mjp_policy* policy = mjp_load(directory_.c_str(), nullptr);
  ASSERT_NE(policy, nullptr) << mjp_last_error();
  mjp_shape shape = MJP_SHAPE;
  ASSERT_EQ(mjp_describe(policy, &shape), 0) << mjp_last_error();
  EXPECT_EQ(shape.picture_height, 96);
  EXPECT_EQ(shape.picture_width, 96);
  EXPECT_EQ(shape.picture_bytes, size_t{3} * 96 * 96 * shape.cameras);
  const auto checkpoint = mjp::LoadCheckpoint(directory_);
  EXPECT_EQ(shape.decision_steps, checkpoint->config.DecisionSteps());
  std::vector<std::string> names;
  for (int i = 0; i < shape.features; ++i) {
    mjp_feature feature = MJP_FEATURE;
    ASSERT_EQ(mjp_feature_at(policy, i, &feature), 0) << mjp_last_error();
    names.emplace_back(feature.name);
    if (names.back() != "action") continue;
    EXPECT_EQ(feature.dim, shape.action_dim);
    EXPECT_EQ(feature.height, 0);
    const mjp::FeatureStats& stats = checkpoint->stats.action;
    ASSERT_NE(feature.low, nullptr);
    EXPECT_EQ(std::vector<float>(feature.low, feature.low + feature.dim), stats.first);
    EXPECT_EQ(std::vector<float>(feature.high, feature.high + feature.dim), stats.second);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"observation.image", "observation.state", "action"}));
  mjp_feature feature = MJP_FEATURE;
  EXPECT_EQ(mjp_feature_at(policy, shape.features, &feature), -1);
  EXPECT_EQ(mjp_feature_at(policy, -1, &feature), -1);
  EXPECT_EQ(mjp_free(policy), 0);
}

// A chunk of a robot that moves on by 1 in each control step, asked at `step`; its first executed
// action lies `x`, `y` apart from that.
std::vector<float> Line(const mjp_shape& shape, int step, float x, float y) {
  std::vector<float> chunk;
  for (int row = 0; row < shape.horizon; ++row) {
    const bool apart = row == shape.first_action;
    chunk.push_back(row + step + (apart ? x : 0));
    chunk.push_back(row + step + (apart ? y : 0));
  }
  return chunk;
}

TEST_F(CApiTest, EveryChunkIsTakenWhereTheCheckpointSaysNothing) {
  mjp_policy* policy = mjp_load(directory_.c_str(), &options_);
  mjp_shape shape = MJP_SHAPE;
  ASSERT_EQ(mjp_describe(policy, &shape), 0) << mjp_last_error();
  EXPECT_EQ(shape.decision_steps, shape.action_steps);
  EXPECT_EQ(shape.noise_decisions, 1);
  const std::vector<float> before = Line(shape, 0, 0, 0), chunk = Line(shape, 8, 0.5f, 0);
  std::vector<float> followed = chunk;
  int age = 0;
  ASSERT_EQ(mjp_follow(policy, 1, before.data(), &age, followed.data()), 0);
  EXPECT_EQ(followed, chunk);
  EXPECT_EQ(age, 0);
  mjp_free(policy);
}

TEST_F(CApiTest, AChunkIsFollowedUntilOneDepartsOrItIsUsedUp) {
  mjp::Json config = mjp::ReadJson(directory_ + "/config.json");
  config["replan_every"] = 2;
  config["replan_beyond"] = 5;
  std::ofstream(directory_ + "/config.json") << config.dump();
  mjp_policy* policy = mjp_load(directory_.c_str(), &options_);
  mjp_shape shape = MJP_SHAPE;
  ASSERT_EQ(mjp_describe(policy, &shape), 0) << mjp_last_error();
  EXPECT_EQ(shape.decision_steps, 2);
  EXPECT_EQ(shape.noise_decisions, 4);
  // of the first robot each chunk is 5 apart, which is allowed; of the second one more than that,
  // and one by what is no number
  const float y[][2] = {{0, 0}, {4, 4}, {4, 4.1f}, {4, 4}, {4, NAN}};
  const int expected_ages[][2] = {{0, 0}, {2, 2}, {4, 0}, {6, 2}, {0, 0}};
  const size_t size = 2 * shape.horizon, ahead = 2 * shape.decision_steps;
  std::vector<float> before;
  int ages[2] = {-1, -1};
  for (int decision = 0; decision < 5; ++decision) {
    std::vector<float> chunks;
    for (const float one : y[decision]) {
      const std::vector<float> chunk = Line(shape, 2 * decision, decision ? 3 : 0, one);
      chunks.insert(chunks.end(), chunk.begin(), chunk.end());
    }
    std::vector<float> expected = chunks;
    for (int robot = 0; robot < 2; ++robot) {
      if (expected_ages[decision][robot] == 0) continue;
      const auto old = before.begin() + robot * size;
      std::copy(old + ahead, old + size, expected.begin() + robot * size);
    }
    ASSERT_EQ(mjp_follow(policy, 2, decision ? before.data() : nullptr, ages, chunks.data()), 0)
        << mjp_last_error();
    EXPECT_THAT(ages, testing::ElementsAreArray(expected_ages[decision])) << decision;
    EXPECT_THAT(chunks, testing::Pointwise(testing::NanSensitiveFloatEq(), expected)) << decision;
    before = chunks;
  }
  mjp_free(policy);
}

TEST_F(CApiTest, WhatCannotBeFollowedIsRefused) {
  mjp_policy* policy = mjp_load(directory_.c_str(), &options_);
  mjp_shape shape = MJP_SHAPE;
  ASSERT_EQ(mjp_describe(policy, &shape), 0) << mjp_last_error();
  std::vector<float> chunk = Line(shape, 0, 0, 0);
  const std::vector<float> before = chunk;
  int age = 0;
  EXPECT_EQ(mjp_follow(policy, 1, nullptr, &age, chunk.data()), -1);
  EXPECT_TRUE(Said("before is NULL")) << mjp_last_error();
  EXPECT_EQ(mjp_follow(policy, 0, before.data(), &age, chunk.data()), -1);
  EXPECT_TRUE(Said("count must be 1")) << mjp_last_error();
  EXPECT_EQ(mjp_follow(policy, 1, before.data(), nullptr, chunk.data()), -1);
  EXPECT_TRUE(Said("an argument is NULL")) << mjp_last_error();
  age = shape.horizon;
  EXPECT_EQ(mjp_follow(policy, 1, before.data(), &age, chunk.data()), -1);
  EXPECT_TRUE(Said("an age is the horizon or more")) << mjp_last_error();
  mjp_free(policy);
  age = -1;
  EXPECT_EQ(mjp_follow(policy, 1, nullptr, &age, chunk.data()), -1);
  EXPECT_TRUE(Said("freed")) << mjp_last_error();
}

// What is executed of such a policy is the mean of chunks, which mjp_follow does not make.
TEST_F(CApiTest, ChunksThatAreEnsembledAreNotFollowed) {
  mjp::ActPolicyConfig config = mjp_test::SmallActConfig();
  config.cameras.clear();
  config.n_action_steps = 1;
  for (const bool ensembles : {false, true}) {
    if (ensembles) config.temporal_ensemble = 0.01;
    const std::string directory = folder_ / (ensembles ? "ensembled" : "plain");
    mjp::WriteCheckpoint(directory, *mjp_test::ActCheckpoint(config), mjp::WeightFormat::kF32);
    mjp_options options = MJP_OPTIONS;
    options.backend = "cpu";
    mjp_policy* policy = mjp_load(directory.c_str(), &options);
    ASSERT_NE(policy, nullptr) << mjp_last_error();
    mjp_shape shape = MJP_SHAPE;
    ASSERT_EQ(mjp_describe(policy, &shape), 0);
    std::vector<float> chunk(static_cast<size_t>(shape.horizon) * shape.action_dim);
    const std::vector<float> state(static_cast<size_t>(shape.state_dim), 1.0f);
    const std::vector<float> environment(static_cast<size_t>(shape.environment_dim), 1.0f);
    mjp_observation observation = MJP_OBSERVATION;
    observation.count = 1;
    observation.state = state.data();
    observation.environment = environment.data();
    EXPECT_EQ(mjp_infer(policy, &observation, chunk.data(), chunk.size()), 0) << mjp_last_error();
    int age = -1;
    EXPECT_EQ(mjp_follow(policy, 1, nullptr, &age, chunk.data()), ensembles ? -1 : 0);
    EXPECT_EQ(age, ensembles ? -1 : 0);
    if (ensembles) {
      EXPECT_TRUE(Said("ensembles its chunks")) << mjp_last_error();
      EXPECT_TRUE(Said("run the policy in the plugin")) << mjp_last_error();
    }
    EXPECT_EQ(mjp_free(policy), 0);
  }
}

// A program of another version of the header hears of it, and nothing is read or written wrongly.
TEST_F(CApiTest, StructsOfAnotherSizeAreRefused) {
  mjp_options old = options_;
  old.size -= sizeof(char*);
  EXPECT_EQ(mjp_load(directory_.c_str(), &old), nullptr);
  EXPECT_TRUE(Said("mjp_options.size is")) << mjp_last_error();
  EXPECT_TRUE(Said("start from MJP_OPTIONS")) << mjp_last_error();
  mjp_policy* policy = mjp_load(directory_.c_str(), &options_);
  ASSERT_NE(policy, nullptr) << mjp_last_error();
  mjp_shape shape = MJP_SHAPE;
  shape.size += 8;
  EXPECT_EQ(mjp_describe(policy, &shape), -1);
  mjp_feature feature{};
  EXPECT_EQ(mjp_feature_at(policy, 0, &feature), -1);
  EXPECT_TRUE(Said("mjp_feature.size is 0")) << mjp_last_error();
  mjp_observation observation{};
  float action = 0;
  EXPECT_EQ(mjp_infer(policy, &observation, &action, 1), -1);
  EXPECT_TRUE(Said("mjp_observation.size is 0")) << mjp_last_error();
  EXPECT_EQ(mjp_free(policy), 0);
}

TEST_F(CApiTest, MistakesAreReportedNotFatal) {
  EXPECT_EQ(mjp_load((folder_ / "absent").c_str(), nullptr), nullptr);
  EXPECT_NE(std::string(mjp_last_error()).find("absent"), std::string::npos) << mjp_last_error();
  EXPECT_EQ(mjp_load(nullptr, nullptr), nullptr);
  mjp_options odd = options_;
  odd.backend = "abacus";
  EXPECT_EQ(mjp_load(directory_.c_str(), &odd), nullptr);
  EXPECT_NE(std::string(mjp_last_error()).find("abacus"), std::string::npos) << mjp_last_error();

  mjp_policy* policy = mjp_load(directory_.c_str(), &options_);
  ASSERT_NE(policy, nullptr) << mjp_last_error();
  mjp_shape shape = MJP_SHAPE;
  ASSERT_EQ(mjp_describe(policy, &shape), 0);
  EXPECT_EQ(mjp_describe(policy, nullptr), -1);
  Observe(shape);
  std::vector<float> actions(2 * shape.horizon * shape.action_dim);
  const auto infer = [&](const mjp_observation& o, size_t capacity) {
    return mjp_infer(policy, &o, actions.data(), capacity);
  };
  EXPECT_EQ(infer(observation_, actions.size() - 1), -1);
  for (const int count : {0, -1, 3}) {
    mjp_observation wrong = observation_;
    wrong.count = count;
    EXPECT_EQ(infer(wrong, actions.size()), -1) << count;
  }
  mjp_observation blind = observation_;
  blind.pictures = nullptr;
  EXPECT_EQ(infer(blind, actions.size()), -1);
  mjp_observation more = observation_;
  more.environment = state_.data();
  EXPECT_EQ(infer(more, actions.size()), -1);
  EXPECT_THAT(mjp_last_error(), testing::HasSubstr("no environment state: pass NULL"));
  EXPECT_EQ(infer(observation_, actions.size()), 0) << mjp_last_error();
  mjp_free(policy);
  mjp_free(nullptr);
}

TEST_F(CApiTest, AnAbsurdBatchIsRefusedAtOnce) {
  options_.batch = 65536;
  EXPECT_EQ(mjp_load(directory_.c_str(), &options_), nullptr);
  EXPECT_TRUE(Said("batch = 65536: allowed are 1 to 4096")) << mjp_last_error();
}

// One object, many threads: each call gives the right numbers or says who has it, and none hangs.
TEST_F(CApiTest, SecondThreadIsRefused) {
  options_.threads = 2;
  mjp_policy* policy = mjp_load(directory_.c_str(), &options_);
  ASSERT_NE(policy, nullptr) << mjp_last_error();
  mjp_shape shape = MJP_SHAPE;
  ASSERT_EQ(mjp_describe(policy, &shape), 0);
  Observe(shape);
  std::vector<float> expected(2 * shape.horizon * shape.action_dim);
  ASSERT_EQ(mjp_infer(policy, &observation_, expected.data(), expected.size()), 0);
  std::atomic<int> right = 0, wrong = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::vector<float> actions(expected.size());
      while (right < 50 || (refused == 0 && right < 20000)) {
        if (mjp_infer(policy, &observation_, actions.data(), actions.size()) == 0) {
          ++(actions == expected ? right : wrong);
        } else {
          ++(Said("in use by another thread") ? refused : wrong);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(right, 50);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(mjp_free(policy), 0) << mjp_last_error();
}

TEST_F(CApiTest, FreedAndForeignObjectsAreRefused) {
  mjp_policy* policy = mjp_load(directory_.c_str(), &options_);
  ASSERT_NE(policy, nullptr) << mjp_last_error();
  mjp_shape shape = MJP_SHAPE;
  ASSERT_EQ(mjp_describe(policy, &shape), 0);
  Observe(shape);
  std::vector<float> actions(2 * shape.horizon * shape.action_dim);
  EXPECT_EQ(mjp_free(policy), 0);
  // what is loaded next is another object, wherever it lies
  mjp_policy* next = mjp_load(directory_.c_str(), &options_);
  ASSERT_NE(next, policy);
  int on_the_stack = 0;
  for (mjp_policy* odd : {policy, reinterpret_cast<mjp_policy*>(&on_the_stack)}) {
    EXPECT_EQ(mjp_free(odd), -1);
    EXPECT_TRUE(Said("freed already")) << mjp_last_error();
    EXPECT_EQ(mjp_describe(odd, &shape), -1);
    EXPECT_EQ(mjp_infer(odd, &observation_, actions.data(), actions.size()), -1);
  }
  EXPECT_EQ(mjp_infer(next, &observation_, actions.data(), actions.size()), 0);
  EXPECT_EQ(mjp_free(next), 0);
  EXPECT_EQ(mjp_free(nullptr), 0);
}

TEST_F(CApiTest, ChildOfForkLoadsItsOwn) {
  options_.threads = 2;
  mjp_policy* policy = mjp_load(directory_.c_str(), &options_);
  ASSERT_NE(policy, nullptr) << mjp_last_error();
  mjp_shape shape = MJP_SHAPE;
  ASSERT_EQ(mjp_describe(policy, &shape), 0);
  Observe(shape);
  std::vector<float> actions(2 * shape.horizon * shape.action_dim);
  const auto infer = [&](mjp_policy* with) {
    return mjp_infer(with, &observation_, actions.data(), actions.size());
  };
  ASSERT_EQ(infer(policy), 0);
  const std::string result = mjp_test::InChild([&]() -> std::string {
    if (infer(policy) != -1 || !Said("before fork()")) return "the parent's object was taken";
    if (mjp_free(policy) != 0) return mjp_last_error();
    mjp_policy* own = mjp_load(directory_.c_str(), &options_);
    if (!own || infer(own) != 0 || mjp_free(own) != 0) return mjp_last_error();
    return "good";
  });
  EXPECT_EQ(result, "good");
  EXPECT_EQ(infer(policy), 0) << mjp_last_error();
  EXPECT_EQ(mjp_free(policy), 0);
}

}  // namespace
