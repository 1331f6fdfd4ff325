// ALOHA Insertion as its file says it, against the original's rule and starts.

#include <array>
#include <string>

#include "tasks/physics/random_state.h"
#include "tests/tasks/mjcf/task_text.h"

namespace mjp_test {
namespace {

using mjp::app::RandomState;
using mjp::app::StepOutcome;
using mjp::app::TaskFile;
using mjp::app::TaskWorld;

std::string Path() { return std::string(MJPOLICY_SOURCE_DIR) + "/models/aloha_insertion.xml"; }

// gym_aloha/tasks/sim.py, InsertionTask.get_reward: from names of the geoms in contact.
int OriginalReward(const mjModel* model, const mjData* data) {
  const auto touch = [&](const std::string& a, const std::string& b) {
    for (int i = 0; i < data->ncon; ++i) {
      const char* first = mj_id2name(model, mjOBJ_GEOM, data->contact[i].geom[0]);
      const char* second = mj_id2name(model, mjOBJ_GEOM, data->contact[i].geom[1]);
      if (!first || !second) continue;
      if ((a == first && b == second) || (a == second && b == first)) return true;
    }
    return false;
  };
  const auto socket = [&](const std::string& other) {
    bool any = false;
    for (const char* wall : {"socket-1", "socket-2", "socket-3", "socket-4"}) {
      any = any || touch(wall, other);
    }
    return any;
  };
  const bool right = touch("red_peg", "vx300s_right/10_right_gripper_finger");
  const bool left = socket("vx300s_left/10_left_gripper_finger");
  const bool on_table = touch("red_peg", "table") || socket("table");
  int reward = 0;
  if (left && right) reward = 1;
  if (left && right && !on_table) reward = 2;
  if (socket("red_peg") && !on_table) reward = 3;
  if (touch("red_peg", "pin")) reward = 4;
  return reward;
}

TEST(InsertionFileTest, StartsAreTheOriginals) {
  const TaskFile file(Path());
  TaskWorld world(file);
  for (const uint32_t seed : {0u, 1u, 1000u}) {
    world.Start(seed);
    RandomState random(seed);
    constexpr double kRanges[2][3][2] = {{{0.1, 0.2}, {0.4, 0.6}, {0.05, 0.05}},
                                         {{-0.2, -0.1}, {0.4, 0.6}, {0.05, 0.05}}};
    for (int body = 0; body < 2; ++body) {
      const mjtNum* pose = world.data()->qpos + 16 + 7 * body;
      for (int i = 0; i < 3; ++i) {
        const auto& [low, high] = kRanges[body][i];
        EXPECT_EQ(pose[i], low + (high - low) * random.RandomSample());
      }
      EXPECT_EQ(pose[3], 1);
    }
  }
}

// Hands, peg and socket put near each other at random, so that all rewards occur.
TEST(InsertionFileTest, RewardsAreTheOriginals) {
  const TaskFile file(Path());
  TaskWorld world(file);
  RandomState random(5);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * random.RandomSample();
  };
  const int left = mj_name2id(world.model(), mjOBJ_GEOM, "vx300s_left/10_left_gripper_finger");
  const int right = mj_name2id(world.model(), mjOBJ_GEOM, "vx300s_right/10_right_gripper_finger");
  ASSERT_GE(left, 0);
  ASSERT_GE(right, 0);
  std::array<int, 5> seen = {};
  for (int i = 0; i < 1500; ++i) {
    world.Start(static_cast<uint32_t>(i));
    mj_kinematics(world.model(), world.data());
    mjtNum* peg = world.data()->qpos + 16;
    mjtNum* socket = peg + 7;
    const auto near = [&](const mjtNum* place, double spread, mjtNum* out) {
      for (int k = 0; k < 3; ++k) out[k] = place[k] + uniform(-spread, spread);
    };
    if (i % 5 != 0) near(world.data()->geom_xpos + 3 * left, 0.03, socket);
    if (i % 3 != 0) near(world.data()->geom_xpos + 3 * right, 0.03, peg);
    if (i % 4 == 1) near(socket, 0.02, peg);
    if (i % 6 == 1) socket[2] = 0.02 + uniform(-0.01, 0.01);
    // now and then the table comes up to the hands
    mjtNum* table = world.model()->body_pos + 3 * mj_name2id(world.model(), mjOBJ_BODY, "table");
    table[2] = i % 7 < 2 ? world.data()->geom_xpos[3 * left + 2] + uniform(-0.05, 0) : 0;
    StepOutcome outcome;
    world.Judge(outcome);
    const int reward = OriginalReward(world.model(), world.data());
    EXPECT_EQ(outcome.reward, reward / 4.0) << i;
    EXPECT_EQ(outcome.success, reward == 4) << i;
    ++seen[reward];
  }
  for (int reward = 0; reward < 5; ++reward) EXPECT_GT(seen[reward], 0) << reward;
}

}  // namespace
}  // namespace mjp_test
