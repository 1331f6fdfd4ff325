// Demonstrations of task files: what is recorded is what happened, whoever shows it.

#include "tasks/demonstration/recorder.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/folders.h"
#include "datasets/check.h"
#include "datasets/dataset.h"
#include "policy/checkpoint/checkpoint.h"
#include "tasks/demonstration/checkpoint_demonstrator.h"
#include "tasks/demonstration/demonstration.h"
#include "tasks/demonstration/planner.h"
#include "tasks/demonstration/stand_ins.h"
#include "tasks/pusht/evaluation/pusht_task.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/task_code.h"
#include "tests/support/renderer.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::string kModels = std::string(MJPOLICY_SOURCE_DIR) + "/models/";

std::shared_ptr<const TaskFile> CartPole() {
  return std::make_shared<const TaskFile>(kModels + "cart_pole.xml");
}

// All values of a feature, episode after episode.
std::vector<double> Values(datasets::Dataset& dataset, const std::string& name) {
  std::vector<double> all;
  for (size_t i = 0; i < dataset.episodes().size(); ++i) {
    const auto column = dataset.Read(i, *dataset.info().Find(name));
    all.insert(all.end(), column.values.numbers.begin(), column.values.numbers.end());
    all.insert(all.end(), column.values.ints.begin(), column.values.ints.end());
  }
  return all;
}

class RecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  }

  RecordOptions Options(const std::string& name, int64_t episodes) const {
    RecordOptions options;
    options.out = folder_ / name;
    options.by = "planner";
    options.episodes = episodes;
    options.pictures = {48, 32, false};
    return options;
  }

  RecordProgress RecordCart(const RecordOptions& options) const {
    const auto file = CartPole();
    return Record(
        options, file,
        [&] {
          return MakeSamplingPlanner(*file, {16, 1.5});
        },
        [](const RecordProgress&) {}, never_);
  }

  mjp_test::TempDir folder_;
  const std::atomic<bool> never_ = false;
};

TEST_F(RecorderTest, ThePlannerSolvesTheCartAndTheDataSetIsSound) {
  const RecordProgress progress = RecordCart(Options("cart", 2));
  EXPECT_EQ(progress.saved, 2);
  EXPECT_GE(progress.succeeded, 2);
  datasets::Dataset dataset(folder_ / "cart");
  EXPECT_THAT(datasets::Check(dataset, {}).problems, ::testing::IsEmpty());
  EXPECT_EQ(dataset.info().fps, 10);
  EXPECT_THAT(dataset.tasks().texts, ::testing::ElementsAre("swing up the pole and keep it up"));
  EXPECT_EQ(dataset.info().Find("observation.state")->names, (Json{"joint:cart", "joint:pole"}));
  const datasets::Feature& camera = *dataset.info().Find("observation.images.front");
  EXPECT_EQ(camera.Width(), 48);
  EXPECT_EQ(camera.Height(), 32);
  const PictureLook look = ParseLook(camera.look, "look");
  EXPECT_EQ(look, MujocoLooks(CartPole()->model(), {{"front"}, 48, 32, -1})[0]);
  EXPECT_EQ(look.width, 48);
  EXPECT_THAT(Values(dataset, "action"),
              Each(::testing::AllOf(::testing::Ge(-1.0), ::testing::Le(1.0))));
  const std::vector<double> done = Values(dataset, "next.done");
  EXPECT_EQ(std::count(done.begin(), done.end(), 1.0), 2);
  EXPECT_EQ(done.back(), 1.0);
  EXPECT_EQ(Values(dataset, "next.success").back(), 1.0);  // the condition has held for a second
}

// the first state is the start of the seed, which an evaluation has too
TEST_F(RecorderTest, EpisodesBeginWhereEvaluationsDo) {
  RecordOptions options = Options("cart", 2);
  options.seed = 40;
  RecordCart(options);
  datasets::Dataset dataset(folder_ / "cart");
  const auto file = CartPole();
  EpisodeWorld world(file, nullptr);
  for (size_t i = 0; i < 2; ++i) {
    const auto seed = dataset.Read(i, *dataset.info().Find("seed"), 0, 1).values.ints.at(0);
    world.Start(static_cast<uint32_t>(seed));
    std::vector<mjtNum> state(2);
    file->policy().state.Read(world.data(), state);
    const auto recorded = dataset.Read(i, *dataset.info().Find("observation.state"), 0, 1);
    EXPECT_EQ(recorded.values.numbers.at(0), static_cast<float>(state[0]));
    EXPECT_EQ(recorded.values.numbers.at(1), static_cast<float>(state[1]));
  }
}

TEST_F(RecorderTest, NeitherThreadsNorBreaksChangeTheData) {
  RecordCart(Options("whole", 3));
  RecordOptions threads = Options("threads", 3);
  threads.threads = 2;
  RecordCart(threads);
  RecordCart(Options("broken", 1));
  RecordCart(Options("broken", 3));
  datasets::Dataset whole(folder_ / "whole"), other(folder_ / "threads");
  datasets::Dataset broken(folder_ / "broken");
  for (const char* feature : {"action", "observation.state", "seed", "next.reward"}) {
    EXPECT_EQ(Values(other, feature), Values(whole, feature)) << feature;
    EXPECT_EQ(Values(broken, feature), Values(whole, feature)) << feature;
  }
  for (size_t i = 0; i < 3; ++i) {
    const datasets::Feature& camera = *whole.info().Find("observation.images.front");
    EXPECT_EQ(broken.ReadPicture(i, camera, 5).rgb, whole.ReadPicture(i, camera, 5).rgb);
  }
}

TEST_F(RecorderTest, AnotherRecordingIsRefused) {
  RecordCart(Options("cart", 1));
  RecordOptions options = Options("cart", 2);
  options.seed = 5;
  try {
    RecordCart(options);
    FAIL() << "went on with another seed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("was recorded with seed 0, now it is 5"));
  }
}

TEST_F(RecorderTest, AStopKeepsWhatWasEnded) {
  std::atomic<bool> stop = false;
  const auto file = CartPole();
  const RecordProgress progress = Record(
      Options("cart", 50), file,
      [&] {
        return MakeSamplingPlanner(*file, {16, 1.5});
      },
      [&](const RecordProgress& now) { stop = now.ended >= 2; }, stop);
  EXPECT_EQ(progress.saved, progress.ended);
  EXPECT_EQ(datasets::Dataset(folder_ / "cart").episodes().size(), 2u);
}

TEST_F(RecorderTest, WhatNobodyCanDoIsSaid) {
  const auto file = CartPole();
  RecordOptions options = Options("cart", 1);
  options.steps = 2;
  try {
    Record(
        options, file, [&] { return MakeHold(*file); }, [](const RecordProgress&) {}, never_);
    FAIL() << "recorded a pole that hangs as a success";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kPartial);
    EXPECT_THAT(error.what(), HasSubstr("none of the last 200 starts was a success"));
  }
  options.keep_all = true;
  options.out = folder_ / "all";
  EXPECT_EQ(
      Record(
          options, file, [&] { return MakeNoise(*file); }, [](const RecordProgress&) {}, never_)
          .saved,
      1);
}

// --keep all does not keep it either: the advice would be to do the same again.
TEST_F(RecorderTest, AModelThatAlwaysDivergesIsSaid) {
  std::string xml = ReadFile(kModels + "cart_pole.xml", size_t{1} << 20);
  const std::string damping = "limited=\"true\" damping=\"0.5\"";
  xml.replace(xml.find(damping), damping.size(), "stiffness=\"-3e9\"");
  const auto file = std::make_shared<const TaskFile>(folder_.Write("cart.xml", xml));
  RecordOptions options = Options("diverged", 1);
  options.keep_all = true;
  try {
    Record(
        options, file, [&] { return MakeHold(*file); }, [](const RecordProgress&) {}, never_);
    FAIL() << "recorded a model that diverges";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kPartial);
    EXPECT_THAT(error.what(),
                HasSubstr("none of the last 200 starts was valid (the physics diverged); only "));
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("--keep all")));
  }
}

// A replay notices a single bit of an action.
TEST_F(RecorderTest, AReplayThatDiffersIsRefused) {
  const auto file = CartPole();
  EpisodeWorld world(file, nullptr);
  const auto noise = MakeNoise(*file);
  Demonstration shown = Demonstrate(world, *noise, 7, 6);
  int steps = 0;
  EpisodeWorld again(file, nullptr);
  Replay(again, shown, [&](int) { ++steps; });
  EXPECT_EQ(steps, 6);
  shown.actions[3][0] = std::nextafter(shown.actions[3][0], 0.0f);
  try {
    Replay(again, shown, [](int) {});
    FAIL() << "another action went unnoticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("control step 4"));
  }
}

TEST_F(RecorderTest, ThePushtExpertStartsAtTheBenchmarksStartsAndSolves) {
  const auto file = std::make_shared<const TaskFile>(kModels + "pusht_policy.xml");
  ASSERT_TRUE(HasExpert(*file));
  RecordOptions options = Options("pusht", 1);
  options.pictures = {96, 96, false};
  options.seed = 100000;
  const RecordProgress progress = Record(
      options, file, [&] { return MakeExpert(*file); }, [](const RecordProgress&) {}, never_);
  EXPECT_EQ(progress.played, 1);
  datasets::Dataset dataset(options.out);
  const auto first = dataset.Read(0, *dataset.info().Find("observation.state"), 0, 1);
  const State start = BenchmarkStart(100000);
  EXPECT_NEAR(first.values.numbers.at(0), start.agent_x, 1e-3);
  EXPECT_NEAR(first.values.numbers.at(1), start.agent_y, 1e-3);
}

// It may begin where a learner got to, and be disturbed: what it planned says nothing of the speed.
TEST(PushtCodeTest, TheExpertSeesHowFastTheAgentMoves) {
  const TaskFile file(kModels + "pusht_policy.xml");
  TaskWorld world(file);
  MakeTaskCode(file)->Start(7, world.data());
  const auto expert = MakeExpert(file);
  const auto step = [&](double velocity) {
    world.data()->qvel[world.model()->jnt_dofadr[mj_name2id(world.model(), mjOBJ_JOINT, "ax")]] =
        velocity;
    std::vector<mjtNum> action(2);
    expert->Begin(0, world.model(), world.data());
    expert->Act(world.model(), world.data(), action);
    return action[0] - kPixelsPerUnit * world.data()->qpos[0];
  };
  const double coasting = 80;  // pixels until an agent of this velocity, 4 units / s, stands still
  EXPECT_LT(std::abs(step(0)), coasting / 2);
  EXPECT_GT(step(4), coasting / 2);
  EXPECT_LT(step(-4), -coasting / 2);
}

TEST(PushtCodeTest, DataSetsSayTheRasteriserOfItsPictures) {
  const TaskFile file(kModels + "pusht_policy.xml");
  const datasets::Info info = InfoOf(file, {96, 96, false});
  const datasets::Feature* camera = info.Find("observation.images.top");
  ASSERT_TRUE(camera);
  EXPECT_EQ(camera->look.at("renderer"), "raster");
}

// Its expert would push the block to where no goal is, and be told of success there.
TEST(PushtCodeTest, RefusesAGoalElsewhere) {
  const mjp_test::TempDir folder;
  const auto text = [](const char* name) { return ReadFile(kModels + name, size_t{1} << 20); };
  std::string xml = text("pusht.xml");
  const std::string goal = "name=\"goal\" pos=\"2.56";
  const size_t at = xml.find(goal);
  ASSERT_NE(at, std::string::npos);
  folder.Write("pusht.xml", xml.replace(at, goal.size(), "name=\"goal\" pos=\"1.56"));
  const TaskFile file(folder.Write("pusht_policy.xml", text("pusht_policy.xml")));
  const auto refuses = ThrowsMessage<Error>(HasSubstr("lies elsewhere than the benchmark's"));
  EXPECT_THAT([&] { MakeTaskCode(file); }, refuses);
  EXPECT_THAT([&] { MakeExpert(file); }, refuses);
}

// The rewards of an episode, bit for bit, are those of the policy in the plugin.
TEST(CheckpointDemonstratorTest, DoesWhatThePolicyDoesInThePlugin) {
  constexpr uint32_t kSeed = 100001;
  const std::string checkpoint = std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image";
  EvaluationOptions evaluation;
  evaluation.checkpoint = checkpoint;
  evaluation.policy.sampler = {SamplerKind::kDdim, 10};
  evaluation.policy.backend = Backend::kCpu;
  const PushtTask task;
  const auto hosted = task.MakeHosted(evaluation, LoadCheckpoint(checkpoint)->config);
  hosted->Start(0, kSeed);
  const auto file = std::make_shared<const TaskFile>(kModels + "pusht_policy.xml");
  const DemonstratorFactory factory = CheckpointDemonstrators(file, {{"checkpoint", checkpoint},
                                                                     {"sampler", "ddim"},
                                                                     {"steps", "10"},
                                                                     {"backend", "cpu"},
                                                                     {"threads", "1"}});
  EpisodeWorld world(file, MakeTaskCode(*file));
  const Demonstration shown = Demonstrate(world, *factory(), kSeed, 60);
  SetAttributesInstead({});
  ASSERT_GE(shown.rewards.size(), 30u);
  StepOutcome outcome;
  for (const float reward : shown.rewards) {
    hosted->Step();
    hosted->Judge(0, outcome);
    EXPECT_EQ(reward, static_cast<float>(outcome.reward));
  }
  EXPECT_EQ(shown.result.measures[0].final, outcome.measures[0]);
  EXPECT_GT(outcome.measures[0], 0);
}

}  // namespace
}  // namespace mjp::app
