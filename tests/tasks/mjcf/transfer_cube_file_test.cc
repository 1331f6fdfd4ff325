// ALOHA TransferCube as its file says it, against the episodes of the original's logic.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/npy.h"
#include "tests/support/real_frames.h"
#include "tests/support/shared_data.h"
#include "tests/tasks/mjcf/task_text.h"

namespace mjp_test {
namespace {

using mjp::app::ReadNpy;
using mjp::app::StepOutcome;
using mjp::app::TaskFile;
using mjp::app::TaskWorld;

constexpr int kNumbers = 14, kPositions = 23, kSteps = 400, kHighest = 4;

std::string Path() { return std::string(MJPOLICY_SOURCE_DIR) + "/models/aloha_transfer_cube.xml"; }

TEST(TransferCubeFileTest, StartsAreTheOriginals) {
  SHARED_OR_SKIP(boxes_path, "aloha/box_pose.npy");
  const std::vector<double> boxes = ReadNpy(boxes_path).ToDoubles();
  const TaskFile file(Path());
  TaskWorld world(file);
  for (uint32_t seed = 0; seed < 18; ++seed) {  // the starts of the others were moved
    world.Start(seed);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(world.data()->qpos[16 + i], boxes[7 * seed + i]);
  }
}

TEST(TransferCubeFileTest, ReplaysTheOriginalsEpisodesWithTheSameRewardAtEachStep) {
  SHARED_OR_SKIP(boxes_path, "aloha/box_pose.npy");
  SHARED_OR_SKIP(actions_path, "aloha/action.npy");
  SHARED_OR_SKIP(positions_path, "aloha/qpos.npy");
  SHARED_OR_SKIP(rewards_path, "aloha/reward.npy");  // int8
  const std::vector<double> boxes = ReadNpy(boxes_path).ToDoubles();
  const std::vector<double> actions = ReadNpy(actions_path).ToDoubles();
  const std::vector<double> positions = ReadNpy(positions_path).ToDoubles();
  const std::vector<uint8_t> rewards = NpyPayload(rewards_path);
  const TaskFile file(Path());
  ASSERT_EQ(file.substeps(), 10);
  ASSERT_EQ(file.rules().steps(), kSteps);
  ASSERT_EQ(file.policy().controls.action_size(), kNumbers);
  ASSERT_EQ(file.policy().state.size(), kNumbers);
  TaskWorld world(file);
  std::array<int, kHighest + 1> seen = {};
  const size_t episodes = boxes.size() / 7;
  for (size_t e = 0; e < episodes; ++e) {
    world.Start(0);
    std::copy_n(&boxes[7 * e], 7, world.data()->qpos + 16);
    for (size_t t = 0; t < kSteps; ++t) {
      const size_t row = e * kSteps + t;
      file.policy().controls.Write({&actions[row * kNumbers], kNumbers}, world.data());
      for (int i = 0; i < file.substeps(); ++i) mj_step(world.model(), world.data());
      StepOutcome outcome;
      world.Judge(outcome);
      ASSERT_EQ(outcome.reward * kHighest, rewards[row]) << "episode " << e << ", step " << t;
      ASSERT_EQ(outcome.success, rewards[row] == kHighest);
      ++seen[rewards[row]];
      const double* expected = &positions[(row + e + 1) * kPositions];
      ASSERT_TRUE(std::equal(expected, expected + kPositions, world.data()->qpos))
          << "episode " << e << ", step " << t;
    }
  }
  for (const int count : seen) EXPECT_GT(count, 0);
}

TEST(TransferCubeFileTest, TheHashDoesNotDependOnTheWorkingFolder) {
  const std::string relative = std::filesystem::relative(Path()).string();
  ASSERT_NE(relative, Path());
  EXPECT_EQ(TaskFile(relative).hash(), TaskFile(Path()).hash());
}

// n(x) = (x - 0.01844) / 0.03956 of each first finger, angles as they are.
TEST(TransferCubeFileTest, StatesAreTheOriginals) {
  const TaskFile file(Path());
  TaskWorld world(file);
  world.Start(3);
  std::array<mjtNum, kNumbers> state;
  file.policy().state.Read(world.data(), state);
  const mjtNum* q = world.data()->qpos;
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < 6; ++i) EXPECT_EQ(state[7 * side + i], q[8 * side + i]);
    EXPECT_NEAR(state[7 * side + 6], (q[8 * side + 6] - 0.01844) / 0.03956, 1e-14);
  }
}

}  // namespace
}  // namespace mjp_test
