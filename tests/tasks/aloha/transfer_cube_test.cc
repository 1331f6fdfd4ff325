#include "tasks/aloha/transfer_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/npy.h"
#include "tests/support/real_frames.h"
#include "tests/support/shared_data.h"
#include "tests/tasks/aloha/stored_episode.h"

namespace mjp::app {
namespace {

constexpr int kNumbers = 14, kPositions = 23, kSteps = TransferCube::kSteps;

AlohaNumbers ActionAt(const double* values) {
  AlohaNumbers action;
  std::copy_n(values, kNumbers, action.begin());
  return action;
}

// The largest difference of the positions from `expected` (23); NaN where one is not a number.
double WorstPosition(TransferCube& simulation, const double* expected) {
  double worst = 0;
  for (int i = 0; i < kPositions; ++i) {
    const double difference = std::abs(simulation.data()->qpos[i] - expected[i]);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

// Episodes that gym-aloha's logic played: experts, noise, out-of-range targets, drops, a left hand
// that lifts the cube alone. All five rewards occur.
TEST(TransferCubeTest, ReplaysTheOriginalsEpisodesBitForBit) {
  SHARED_OR_SKIP(boxes_path, "aloha/box_pose.npy");
  SHARED_OR_SKIP(actions_path, "aloha/action.npy");
  SHARED_OR_SKIP(positions_path, "aloha/qpos.npy");
  SHARED_OR_SKIP(rewards_path, "aloha/reward.npy");  // int8
  const std::vector<double> boxes = ReadNpy(boxes_path).ToDoubles();
  const std::vector<double> actions = ReadNpy(actions_path).ToDoubles();
  const std::vector<double> positions = ReadNpy(positions_path).ToDoubles();
  const std::vector<uint8_t> rewards = mjp_test::NpyPayload(rewards_path);
  const size_t episodes = boxes.size() / 7;
  ASSERT_EQ(rewards.size(), episodes * kSteps);
  TransferCube simulation;
  std::array<int, 5> seen = {};
  for (size_t e = 0; e < episodes; ++e) {
    std::array<mjtNum, 7> box;
    std::copy_n(&boxes[7 * e], 7, box.begin());
    simulation.Start(box);
    for (size_t t = 0; t < kSteps; ++t) {
      const size_t row = e * kSteps + t;
      const int reward = simulation.Step(ActionAt(&actions[row * kNumbers]));
      ASSERT_EQ(reward, rewards[row]) << "episode " << e << ", step " << t;
      ++seen[reward];
      ASSERT_EQ(WorstPosition(simulation, &positions[(row + e + 1) * kPositions]), 0)
          << "episode " << e << ", step " << t;
    }
  }
  for (const int count : seen) EXPECT_GT(count, 0);
}

TEST(TransferCubeTest, StartsAreTheOriginals) {
  SHARED_OR_SKIP(boxes_path, "aloha/box_pose.npy");
  const std::vector<double> boxes = ReadNpy(boxes_path).ToDoubles();
  TransferCube simulation;
  for (uint32_t seed = 0; seed < 18; ++seed) {  // the starts of the others were moved
    simulation.Start(seed);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(simulation.data()->qpos[16 + i], boxes[7 * seed + i]);
  }
}

TEST(TransferCubeTest, ReplaysTheStoredEpisodeBitForBit) {
  std::vector<int> rewards;
  for (const auto& [reward, times] : mjp_test::kStoredRewards)
    rewards.resize(rewards.size() + times, reward);
  ASSERT_EQ(rewards.size(), static_cast<size_t>(kSteps));
  TransferCube simulation;
  simulation.Start(mjp_test::kStoredSeed);
  for (int t = 0; t < kSteps; ++t) {
    const double* before = mjp_test::kStoredActions[t / 10];
    const double* after = mjp_test::kStoredActions[std::min(t / 10 + 1, 39)];
    AlohaNumbers action;
    for (int i = 0; i < kNumbers; ++i)
      action[i] = before[i] + (after[i] - before[i]) * ((t % 10) / 10.0);
    ASSERT_EQ(simulation.Step(action), rewards[t]) << "step " << t;
    if (t % 100 == 99) {
      EXPECT_EQ(WorstPosition(simulation, mjp_test::kStoredPositions[t / 100]), 0) << "step " << t;
    }
  }
}

TEST(TransferCubeTest, AnActionThatIsNoNumberIsAnError) {
  TransferCube simulation;
  simulation.Start(7);
  AlohaNumbers action = simulation.State();
  EXPECT_EQ(simulation.Step(action), 0);
  action[3] = std::nan("");
  const auto warn = std::exchange(mju_user_warning, [](const char*) {});
  EXPECT_THROW(simulation.Step(action), Error);
  mju_user_warning = warn;
  simulation.Start(7);
  EXPECT_EQ(simulation.Step(simulation.State()), 0);
}

TEST(TransferCubeTest, StateIsInTheUnitsOfTheAction) {
  TransferCube simulation;
  simulation.Start(7);
  AlohaNumbers action = {0, -0.96, 1.16, 0, -0.3, 0, 0.8, 0.1, -0.9, 1.1, 0.2, -0.2, 0.1, 0.4};
  for (int t = 0; t < 100; ++t) simulation.Step(action);
  const AlohaNumbers state = simulation.State();
  // the servos are springs: 0.02 radians of sag, the hands have friction alone
  for (int i = 0; i < kNumbers; ++i) EXPECT_NEAR(state[i], action[i], 0.02) << "number " << i;
}

}  // namespace
}  // namespace mjp::app
