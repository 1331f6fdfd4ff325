#include <filesystem>
#include <fstream>
#include <thread>

#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "tasks/mjcf/run_model.h"
#include "tests/tasks/mjcf/task_text.h"
#include "viewer/simulation/open_simulation.h"

namespace mjp::app {
namespace {

// A task file in the viewer: a slider that a policy moves without pictures.
class TaskEpisodeTest : public mjp_test::TaskTextTest {
 protected:
  TaskEpisodeTest() {
    mjp::UnetPolicyConfig config;
    config.type = "diffusion_compact";
    config.state_dim = config.action_dim = 1;
    config.environment_dim = 3;
    config.unet.down_dims = {16, 32};
    config.unet.step_embed_dim = 16;
    mjp::NormalizerStats stats;
    stats.state = stats.action = {mjp::Normalization::kMinMax, {-1}, {1}};
    stats.environment = {mjp::Normalization::kMinMax, {-1, -1, -1}, {1, 1, 1}};
    mjp::WriteCheckpoint(folder_ / "nowhere", *mjp::RandomCheckpoint(config, stats, 7),
                         mjp::WeightFormat::kF16);
  }
  std::string File(const Elements& elements) const {
    return folder_.Write("task.xml", Xml(elements,
                                         "<config key=\"environment\" value=\"body:ball\"/>"
                                         "<config key=\"sampler\" value=\"ddim\"/>"
                                         "<config key=\"steps\" value=\"2\"/>"
                                         "<config key=\"backend\" value=\"cpu\"/>"));
  }
  static std::unique_ptr<Simulation> Open(const std::string& file, uint32_t seed) {
    SimulationRequest request;
    return Open(file, seed, request);
  }
  static std::unique_ptr<Simulation> Open(const std::string& file, uint32_t seed,
                                          SimulationRequest request) {
    request.model = file;
    request.seed = seed;
    return OpenSimulation(request);
  }
  // A task whose starts change the model, with a sampler of `steps` in place of its own.
  std::unique_ptr<Simulation> OpenWithSteps(int steps) const {
    SimulationRequest request;
    request.overrule = [steps](mjp::PolicyOptions& options) { options.sampler.steps = steps; };
    return Open(File(With("task.start", "geom_rgba brick uniform 0 1 0 1 0 1 1 1")), 1, request);
  }
  // Of the policy that makes the newest decision.
  static int Passes(Simulation& simulation) {
    simulation.Advance();
    return Look(simulation).log->back()->times.passes;
  }
  static SimSnapshot Play(Simulation& simulation) {
    while (!simulation.finished() && simulation.step() < 100) simulation.Advance();
    return Look(simulation);
  }
  static SimSnapshot Look(const Simulation& simulation) {
    SimSnapshot snapshot;
    simulation.Fill(snapshot);
    return snapshot;
  }
};

TEST_F(TaskEpisodeTest, IsThatOfAnEvaluation) {
  Elements elements =
      With("task.start",
           "key up; joint slide uniform -1 1; body_pos hand uniform -0.2 0.2 -0.2 0.2 0 0");
  elements["task.success"] = "slide > 5";
  const std::string file = File(elements);
  const auto simulation = Open(file, 3);
  for (const uint32_t seed : {3u, 4u}) {
    simulation->Restart(seed);
    const SimSnapshot seen = Play(*simulation);
    RunModelOptions options;
    options.model = file;
    options.seed = seed;
    const std::atomic<bool> stop = false;
    const EpisodeResult expected = RunModel(
                                       options, [](double, double) {}, stop)
                                       .episode;
    EXPECT_EQ(seen.hash, expected.hash) << "seed " << seed;
    EXPECT_EQ(seen.step, 20);
    EXPECT_FALSE(seen.success);
    EXPECT_EQ(seen.score, expected.max_reward);
  }
  const auto rows = Look(*simulation).episodes;
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_NE((*rows)[0].hash, (*rows)[1].hash);
  EXPECT_EQ((*rows)[1].seed, 4u);
}

TEST_F(TaskEpisodeTest, EndsWhereTheTaskIsSolvedAndGoesBack) {
  const auto simulation = Open(File(With("task.success", "place[2] &lt; 0.45 for 0.2")), 0);
  const SimSnapshot once = Play(*simulation);
  EXPECT_TRUE(once.success);
  EXPECT_LT(once.step, 20);
  for (const int back : {1, 2}) {
    simulation->Seek(once.step - back);
    EXPECT_FALSE(simulation->finished());
    const SimSnapshot again = Play(*simulation);
    EXPECT_EQ(again.step, once.step) << back;
    EXPECT_EQ(again.hash, once.hash) << back;
  }
  ASSERT_TRUE(Look(*simulation).episodes);
  EXPECT_EQ(Look(*simulation).episodes->size(), 1u);
}

TEST_F(TaskEpisodeTest, WhatAStartDrawsOfTheModelIsInAnotherModel) {
  const auto simulation =
      Open(File(With("task.start", "geom_rgba brick uniform 0 1 0 1 0 1 1 1")), 1);
  const auto first = Look(*simulation).model;
  const int brick = mj_name2id(first.get(), mjOBJ_GEOM, "brick");
  const float red = first->geom_rgba[4 * brick];
  const SimSnapshot once = Play(*simulation);
  EXPECT_GT(once.decisions, 0);
  simulation->Restart(2);
  EXPECT_EQ(first->geom_rgba[4 * brick], red) << "the window still reads it";
  EXPECT_NE(Look(*simulation).model->geom_rgba[4 * brick], red);
  simulation->Restart(1);
  EXPECT_EQ(Play(*simulation).hash, once.hash);
}

TEST_F(TaskEpisodeTest, ThePolicyIsThatOfThePanelsWhateverElseIsOpened) {
  auto simulation = OpenWithSteps(3);
  EXPECT_EQ(Passes(*simulation), 3);
  EXPECT_THROW(Open(File(With("task.success", "nothing > 1")), 1), mjp::Error);
  simulation->Restart(2);
  EXPECT_EQ(Passes(*simulation), 3) << "after one that could not be opened";
  const auto next = OpenWithSteps(4);
  simulation->Restart(3);
  EXPECT_EQ(Passes(*simulation), 3) << "beside another";
  simulation = nullptr;
  next->Restart(2);
  EXPECT_EQ(Passes(*next), 4) << "after the one before has gone";
}

TEST_F(TaskEpisodeTest, AnEpisodeWithoutItsPolicyDoesNotBegin) {
  const auto simulation = OpenWithSteps(3);
  EXPECT_EQ(Passes(*simulation), 3);
  const SimSnapshot before = Look(*simulation);
  std::filesystem::rename(folder_ / "nowhere", folder_ / "elsewhere");
  try {
    simulation->Restart(2);
    ADD_FAILURE() << "it began";
  } catch (const mjp::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("nowhere"));
  }
  EXPECT_EQ(Look(*simulation).seed, before.seed);
  EXPECT_EQ(Look(*simulation).model, before.model);
  const SimSnapshot seen = Play(*simulation);
  std::filesystem::rename(folder_ / "elsewhere", folder_ / "nowhere");
  EXPECT_EQ(seen.hash, Play(*OpenWithSteps(3)).hash) << "the episode before goes on";
}

TEST_F(TaskEpisodeTest, ATaskThatIsWrittenWronglyIsRefused) {
  try {
    Open(File(With("task.success", "nothing > 1")), 0);
    FAIL() << "it was opened";
  } catch (const mjp::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("nothing"));
  }
}

}  // namespace
}  // namespace mjp::app
