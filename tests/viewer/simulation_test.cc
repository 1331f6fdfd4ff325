#include <gtest/gtest.h>

#include <atomic>

#include "policy/checkpoint/checkpoint.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/renderer.h"
#include "tests/support/temp_dir.h"
#include "viewer/simulation/episode_simulation.h"
#include "viewer/simulation/simulation_thread.h"

namespace mjp::app {
namespace {

constexpr uint32_t kSeed = 100007;

// The viewer's simulation and the evaluator on one small checkpoint.
class SimulationTest : public testing::Test {
 protected:
  SimulationTest() {
    mjp_test::WriteSmallCheckpoint(folder_.path());
    options_.backend = mjp::Backend::kCpu;
    options_.scene_drawer = &mjp::FlatSceneDrawer();
    checkpoint_ = OpenCheckpoint(folder_.path());
  }

  std::unique_ptr<Simulation> Make(uint32_t seed) const {
    return std::make_unique<EpisodeSimulation>(LoadModel(ModelPath("pusht.xml")), checkpoint_,
                                               options_, seed);
  }

  static SimSnapshot Look(const Simulation& simulation) {
    SimSnapshot snapshot;
    simulation.Fill(snapshot);
    return snapshot;
  }

  static SimSnapshot Finish(Simulation& simulation) {
    while (!simulation.finished()) simulation.Advance();
    return Look(simulation);
  }

  static void AdvanceTo(Simulation& simulation, int step) {
    while (simulation.step() < step) simulation.Advance();
  }

  EpisodeResult Evaluated(uint32_t seed) const {
    EvaluationOptions options;
    options.checkpoint = folder_.path();
    options.policy = options_;
    options.seed = seed;
    options.episodes = 1;
    const std::atomic<bool> stop{false};
    return Evaluate(
               PushtTask(), options, mjp::Policy::Create(checkpoint_, options_), {0},
               [](const EpisodeResult&) {}, stop)
        .episodes.at(0);
  }

  mjp_test::TempDir folder_;
  mjp::PolicyOptions options_;
  std::shared_ptr<const mjp::Checkpoint> checkpoint_;
};

TEST_F(SimulationTest, RunsTheEpisodeOfAnEvaluation) {
  const EpisodeResult expected = Evaluated(kSeed);
  const SimSnapshot snapshot = Finish(*Make(kSeed));
  EXPECT_EQ(snapshot.hash, expected.hash);
  EXPECT_EQ(snapshot.step, expected.steps);
  EXPECT_EQ(snapshot.decisions, expected.decisions);
  EXPECT_EQ(snapshot.score, expected.max_reward);
  EXPECT_EQ(snapshot.coverage->size(), static_cast<size_t>(expected.steps) + 1);
}

TEST_F(SimulationTest, TracingAndSamplesDoNotChangeTheEpisode) {
  const uint64_t expected = Finish(*Make(kSeed)).hash;
  const auto simulation = Make(kSeed);
  simulation->SetTracing(false);
  AdvanceTo(*simulation, 20);
  simulation->Sample(3);
  const DecisionRecord& last = *Look(*simulation).log->back();
  EXPECT_TRUE(last.denoising.empty());
  EXPECT_EQ(last.samples.size(), 3 * last.actions.size());
  EXPECT_NE(last.samples[0], last.actions[0]);
  EXPECT_EQ(Finish(*simulation).hash, expected);
}

TEST_F(SimulationTest, GoingBackGivesTheSameEpisodeAgain) {
  const auto simulation = Make(kSeed);
  const SimSnapshot once = Finish(*simulation);
  for (const int step : {once.step - 1, 16, 13, 0}) {
    simulation->Seek(step);
    EXPECT_EQ(simulation->step(), step);
    const SimSnapshot again = Finish(*simulation);
    EXPECT_EQ(again.hash, once.hash) << "from step " << step;
    EXPECT_EQ(again.decisions, once.decisions) << "from step " << step;
    EXPECT_EQ(again.log->size(), once.log->size()) << "from step " << step;
  }
}

TEST_F(SimulationTest, DenoisingEndsInTheChunk) {
  const auto simulation = Make(kSeed);
  simulation->Advance();
  const DecisionRecord& decision = *Look(*simulation).log->back();
  const size_t size = decision.actions.size();
  ASSERT_GE(decision.denoising.size(), size);
  for (size_t i = 0; i < size; ++i) {
    EXPECT_NEAR(decision.denoising[decision.denoising.size() - size + i], decision.actions[i],
                1e-3);
  }
}

TEST_F(SimulationTest, EveryPassIsTimed) {
  const auto simulation = Make(kSeed);
  simulation->Advance();
  const mjp::StageTimes& times = Look(*simulation).log->back()->times;
  ASSERT_GT(times.passes, 1);
  ASSERT_EQ(times.steps.size(), static_cast<size_t>(times.passes));
  double at = times[mjp::Stage::kDenoise].begin;
  for (const mjp::StageTimes::Span& pass : times.steps) {
    EXPECT_GE(pass.begin, at);
    EXPECT_GT(pass.end, pass.begin);
    at = pass.end;
  }
  EXPECT_LE(at, times[mjp::Stage::kDenoise].end);
}

TEST_F(SimulationTest, ThreadPlaysToTheSameEndWhileItIsWatched) {
  const uint64_t expected = Finish(*Make(kSeed)).hash;
  SimulationThread thread(Make(kSeed));
  thread.Send(SpeedCommand{0});
  thread.Send(PlayCommand{true});
  std::shared_ptr<const SimSnapshot> snapshot = thread.snapshot();
  int last = 0;
  while (!snapshot->finished) {
    snapshot = thread.snapshot();
    EXPECT_GE(snapshot->step, last);
    EXPECT_EQ(snapshot->coverage->size(), static_cast<size_t>(snapshot->step) + 1);
    last = snapshot->step;
    ASSERT_EQ(snapshot->message, "");
  }
  EXPECT_EQ(snapshot->hash, expected);
}

TEST_F(SimulationTest, WhatCannotBeOpenedIsAMessageAndThePolicyStays) {
  SimulationThread thread(Make(kSeed));
  const auto policy = thread.snapshot()->policy;
  thread.Send(CheckpointCommand{folder_.path() + "/nowhere"});
  thread.Flush();
  EXPECT_NE(thread.snapshot()->message, "");
  EXPECT_EQ(thread.snapshot()->policy, policy);
  thread.Send(RunCommand{3});
  thread.Send(SpeedCommand{0});
  thread.Flush();
  while (thread.snapshot()->step < 3) ASSERT_EQ(thread.snapshot()->message, "");
}

TEST_F(SimulationTest, ThePolicySeesWhatTheModelShows) {
  const auto pictures = [this](const char* model) {
    EpisodeSimulation simulation(LoadModel(ModelPath(model)), checkpoint_, options_, kSeed);
    simulation.Advance();
    return PicturesOf(*Look(simulation).log->back());
  };
  const auto blank = [](const std::vector<uint8_t>& rgb) {
    for (size_t i = 3; i < rgb.size(); ++i) {
      if (rgb[i] != rgb[i - 3]) return false;
    }
    return !rgb.empty();
  };
  EXPECT_FALSE(blank(pictures("pusht.xml")));
  if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_TRUE(blank(pictures("pusht_physics.xml"))) << "a picture of what is not there";
}

}  // namespace
}  // namespace mjp::app
