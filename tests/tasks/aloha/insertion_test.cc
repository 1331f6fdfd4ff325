// ALOHA Insertion's expert, in the world of its task file.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tasks/aloha/insertion/insertion_plan.h"
#include "tasks/demonstration/demonstration.h"
#include "tasks/task_code.h"

namespace mjp::app {
namespace {

std::shared_ptr<const TaskFile> File() {
  return std::make_shared<const TaskFile>(std::string(MJPOLICY_SOURCE_DIR) +
                                          "/models/aloha_insertion.xml");
}

TEST(InsertionExpertTest, PutsThePegIn) {
  const auto file = File();
  ASSERT_TRUE(HasExpert(*file));
  const std::unique_ptr<Demonstrator> expert = MakeExpert(*file);
  EpisodeWorld world(file, nullptr);
  for (const uint32_t seed : {0u, 1u}) {
    const Demonstration shown = Demonstrate(world, *expert, seed, file->rules().steps());
    EXPECT_TRUE(shown.result.success()) << "seed " << seed;
    EXPECT_EQ(shown.rewards.back(), 1) << "seed " << seed << ": it stays in";
    // both are lifted, they meet in the air, the peg touches the pin: each stage of the original
    for (const float reward : {0.25f, 0.5f, 0.75f}) {
      EXPECT_NE(std::ranges::find(shown.rewards, reward), shown.rewards.end()) << reward;
    }
    // what is recorded can be learnt: no joint of an arm is told to jump
    for (size_t t = 1; t < shown.actions.size(); ++t) {
      for (int i = 0; i < 14; ++i) {
        ASSERT_NEAR(shown.actions[t][i], shown.actions[t - 1][i], 0.12)
            << "seed " << seed << ", step " << t << ", number " << i;
      }
    }
  }
}

// The right hand opens on its way to the socket.
TEST(InsertionExpertTest, FetchesADroppedPegAgain) {
  const auto file = File();
  EpisodeWorld world(file, nullptr);
  InsertionExpert expert(world.model());
  expert.Begin({});
  world.Start(5);
  StepOutcome outcome;
  bool dropped = false, solved = false;
  for (int t = 0; t < 560 && !solved; ++t) {
    AlohaNumbers action = expert.Act(world.data());
    if (t >= 130 && t < 150) action[13] = 1;
    std::vector<float> single(action.begin(), action.end());
    world.Step(single, outcome);
    dropped |= t >= 150 && expert.stage() == InsertionStage::kFetch;
    solved = outcome.success;
  }
  EXPECT_TRUE(dropped);
  EXPECT_TRUE(solved);
}

TEST(InsertionExpertTest, StaysWhereAPartIsOutOfReach) {
  const auto file = File();
  const ModelPtr model(mj_copyModel(nullptr, file->model()));
  const DataPtr data = MakeData(model.get());
  mj_resetDataKeyframe(model.get(), data.get(), mj_name2id(model.get(), mjOBJ_KEY, "home"));
  const int peg = model->jnt_qposadr[mj_name2id(model.get(), mjOBJ_JOINT, "red_peg_joint")];
  data->qpos[peg + 1] = 1.6;
  mj_forward(model.get(), data.get());
  InsertionExpert expert(model.get());
  expert.Begin({});
  const AlohaNumbers action = expert.Act(data.get());
  EXPECT_EQ(expert.stage(), InsertionStage::kLost);
  for (const int i : {0, 7}) EXPECT_NEAR(action[i], 0, 0.05) << "number " << i;
}

TEST(InsertionExpertTest, RefusesAnotherModelByName) {
  const ModelPtr cube = LoadModel(ModelPath("aloha/transfer_cube.xml"));
  try {
    InsertionExpert expert(cube.get());
    FAIL() << "TransferCube was taken for Insertion";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    EXPECT_NE(std::string(error.what()).find("socket"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace mjp::app
