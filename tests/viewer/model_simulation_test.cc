#include "viewer/simulation/model_simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "policy/act/act_config.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/temp_dir.h"
#include "viewer/simulation/episode_simulation.h"
#include "viewer/simulation/simulation_thread.h"

namespace mjp::app {
namespace {

constexpr uint32_t kSeed = 100007;

// Models as a person would open them, with a small checkpoint where they need one.
class ModelSimulationTest : public testing::Test {
 protected:
  ModelSimulationTest() { mjp_test::WriteSmallCheckpoint(folder_ / "checkpoint"); }

  std::string Write(const std::string& name, const std::string& xml) const {
    const std::string file = folder_ / name;
    std::ofstream(file) << xml;
    return file;
  }
  // Push-T with the policy as its plugin.
  std::string WithPlugin(const std::string& checkpoint, const std::string& camera = "top",
                         const std::string& attributes = "") const {
    return Write("policy.xml", "<mujoco><include file=\"" + ModelPath("pusht.xml") +
                                   "\"/><extension><plugin plugin=\"mjpolicy.policy\"><instance "
                                   "name=\"policy\"><config key=\"checkpoint\" value=\"" +
                                   checkpoint + "\"/><config key=\"camera\" value=\"" + camera +
                                   "\"/><config key=\"state\" value=\"ax ay\"/>"
                                   "<config key=\"state_scale\" value=\"100\"/>"
                                   "<config key=\"actuators\" value=\"ax ay\"/>"
                                   "<config key=\"action_scale\" value=\"100\"/>"
                                   "<config key=\"backend\" value=\"cpu\"/>" +
                                   attributes + "</instance></plugin></extension></mujoco>");
  }
  std::string WithPlugin() const { return WithPlugin(folder_ / "checkpoint"); }
  // A pendulum, which no policy drives.
  std::string Pendulum() const {
    return Write("pendulum.xml",
                 "<mujoco><worldbody><body><joint name=\"hinge\" axis=\"0 1 0\"/>"
                 "<geom size=\"0.1\" pos=\"0.3 0 -1\"/></body></worldbody></mujoco>");
  }
  static std::unique_ptr<Simulation> Open(const std::string& file) {
    SimulationRequest request;
    return Open(file, request);
  }
  static std::unique_ptr<Simulation> Open(const std::string& file, SimulationRequest request) {
    request.model = file;
    request.seed = kSeed;
    return OpenSimulation(request);
  }
  static SimSnapshot AdvanceTo(Simulation& simulation, int step) {
    while (simulation.step() < step) {
      simulation.Advance();
      simulation.UseIdleTime();
    }
    SimSnapshot snapshot;
    simulation.Fill(snapshot);
    return snapshot;
  }

  mjp_test::TempDir folder_;
};

// LeRobot: the i-th oldest of n chunks has weight exp(-m i), and the weights are made to sum to 1
TEST_F(ModelSimulationTest, SharesOfChunksAreTheWeightsOfTemporalEnsembling) {
  constexpr double kM = 0.3;
  mjp::ActPolicyConfig config = mjp_test::SmallActConfig();
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.state_dim = config.action_dim = 2;
  config.environment_dim = 0;
  config.n_action_steps = 1;
  config.temporal_ensemble = kM;
  const auto checkpoint = mjp_test::ActCheckpoint(config);
  mjp::WriteCheckpoint(folder_ / "act", *checkpoint, mjp::WeightFormat::kF16);
  EpisodeSimulation episode(LoadModel(ModelPath("pusht.xml")), OpenCheckpoint(folder_ / "act"), {},
                            kSeed);
  const auto hosted = Open(WithPlugin(folder_ / "act"));
  const SimSnapshot evaluated = AdvanceTo(episode, 9), seen = AdvanceTo(*hosted, 9);
  ASSERT_EQ(seen.log->size(), 9u);
  ASSERT_EQ(evaluated.log->size(), 9u);
  for (int step = 0; step < 9; ++step) {
    SCOPED_TRACE(step);
    const std::vector<float>& shares = (*seen.log)[step]->shares;
    EXPECT_EQ((*evaluated.log)[step]->shares, shares);
    const int chunks = std::min(step + 1, config.horizon);
    double sum = 0;
    for (int i = 0; i < chunks; ++i) sum += std::exp(-kM * i);
    ASSERT_EQ(shares.size(), static_cast<size_t>(chunks));
    for (int i = 0; i < chunks; ++i) EXPECT_NEAR(shares[i], std::exp(-kM * i) / sum, 1e-6);
  }
  EXPECT_TRUE(AdvanceTo(*Open(WithPlugin()), 1).log->back()->shares.empty());
}

TEST_F(ModelSimulationTest, ThePluginDoesWhatAnEvaluationDoes) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  const auto checkpoint = OpenCheckpoint(folder_ / "checkpoint");
  EpisodeSimulation episode(LoadModel(ModelPath("pusht.xml")), checkpoint, options, kSeed);
  const auto hosted = Open(WithPlugin());
  const SimSnapshot expected = AdvanceTo(episode, 40), seen = AdvanceTo(*hosted, 40);
  EXPECT_EQ(seen.qpos, expected.qpos);
  EXPECT_EQ(*seen.coverage, *expected.coverage);
  ASSERT_EQ(seen.log->size(), expected.log->size());
  for (size_t i = 0; i < seen.log->size(); ++i) {
    const DecisionRecord &a = *(*expected.log)[i], &b = *(*seen.log)[i];
    EXPECT_EQ(b.step, a.step);
    EXPECT_EQ(b.actions, a.actions);
    EXPECT_EQ(b.denoising, a.denoising);
    EXPECT_EQ(PicturesOf(b), PicturesOf(a));
    EXPECT_FALSE(PicturesOf(b).empty());
    EXPECT_EQ(b.qpos, a.qpos);
    EXPECT_EQ(b.times.steps.size(), a.times.steps.size()) << "passes that were timed";
  }
}

TEST_F(ModelSimulationTest, GoingBackGivesTheSameAgain) {
  const auto simulation = Open(WithPlugin());
  const SimSnapshot once = AdvanceTo(*simulation, 30);
  for (const int step : {29, 16, 13, 0}) {
    simulation->Seek(step);
    EXPECT_EQ(simulation->step(), step);
    const SimSnapshot again = AdvanceTo(*simulation, 30);
    EXPECT_EQ(again.qpos, once.qpos) << "from step " << step;
    EXPECT_EQ(again.log->size(), once.log->size()) << "from step " << step;
    EXPECT_EQ(again.coverage->size(), 31u) << "from step " << step;
  }
}

TEST_F(ModelSimulationTest, TheDenoisingIsFoundWhenNothingIsDue) {
  const auto simulation = Open(WithPlugin());
  const auto newest = [&] {
    SimSnapshot snapshot;
    simulation->Fill(snapshot);
    return snapshot.log->back();
  };
  simulation->Advance();
  EXPECT_TRUE(newest()->denoising.empty()) << "the decision was held up";
  simulation->UseIdleTime();
  const auto explained = newest();
  const size_t size = explained->actions.size();
  ASSERT_GE(explained->denoising.size(), size);
  for (size_t i = 0; i < size; ++i) {
    EXPECT_NEAR(explained->denoising[explained->denoising.size() - size + i], explained->actions[i],
                1e-3);
  }
  simulation->UseIdleTime();
  EXPECT_EQ(newest(), explained) << "once is enough";
}

TEST_F(ModelSimulationTest, SamplesAreOfTheSamePictureAndDiffer) {
  const auto simulation = Open(WithPlugin());
  AdvanceTo(*simulation, 3);
  simulation->Sample(3);
  const DecisionRecord last = *AdvanceTo(*simulation, 3).log->back();
  ASSERT_EQ(last.samples.size(), 3 * last.actions.size());
  EXPECT_NE(last.samples[0], last.actions[0]);
  EXPECT_NE(last.samples[0], last.samples[last.actions.size()]);
}

TEST_F(ModelSimulationTest, SamplesOfADecisionThatIsForgottenGoToNoOther) {
  const auto simulation = Open(WithPlugin());
  ASSERT_EQ(AdvanceTo(*simulation, 9).log->size(), 2u);
  simulation->Seek(5);
  simulation->Sample(2);
  SimSnapshot snapshot;
  simulation->Fill(snapshot);
  ASSERT_EQ(snapshot.log->size(), 1u);
  EXPECT_TRUE(snapshot.log->back()->samples.empty());
}

TEST_F(ModelSimulationTest, ThePolicyRunsInAnotherWayOrStays) {
  const auto simulation = Open(WithPlugin());
  mjp::PolicyOptions options = AdvanceTo(*simulation, 1).policy->options;
  options.sampler = {mjp::SamplerKind::kDdim, 3};
  simulation->SetOptions(options);
  const SimSnapshot changed = AdvanceTo(*simulation, 1);
  EXPECT_EQ(changed.policy->options.sampler.steps, 3);
  EXPECT_EQ(changed.log->back()->times.passes, 3);
  EXPECT_EQ(changed.log->back()->denoising.size(), 3 * changed.log->back()->actions.size());
  EXPECT_THROW(simulation->SetCheckpoint(folder_ / "nowhere"), mjp::Error);
  EXPECT_EQ(AdvanceTo(*simulation, 9).policy->options.sampler.steps, 3);
}

TEST_F(ModelSimulationTest, OptionsLeaveTheNoiseToTheModelsActionSteps) {
  const auto simulation =
      Open(WithPlugin(folder_ / "checkpoint", "top", "<config key=\"action_steps\" value=\"2\"/>"));
  mjp::PolicyOptions options = AdvanceTo(*simulation, 1).policy->options;
  EXPECT_EQ(options.sampler.hold_noise, 4);
  options.sampler = {mjp::SamplerKind::kDdim, 3};
  simulation->SetOptions(options);
  EXPECT_EQ(AdvanceTo(*simulation, 1).policy->options.sampler.hold_noise, 4);
  options.sampler.hold_noise = 1;
  simulation->SetOptions(options);
  EXPECT_EQ(AdvanceTo(*simulation, 1).policy->options.sampler.hold_noise, 1);
}

TEST_F(ModelSimulationTest, WhatIsOverruledLeavesTheOtherAttributes) {
  const std::string models = std::filesystem::path(ModelPath("pusht.xml")).parent_path();
  SimulationRequest request;
  request.checkpoint = folder_ / "checkpoint";
  request.overrule = [](mjp::PolicyOptions& options) {
    options.backend = mjp::Backend::kCpu;
    options.threads = 2;
  };
  const auto simulation = Open(models + "/pusht_policy.xml", request);
  const mjp::PolicyOptions options = AdvanceTo(*simulation, 0).policy->options;
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.sampler.kind, mjp::SamplerKind::kDdim);
  EXPECT_EQ(options.sampler.steps, 10);
}

TEST_F(ModelSimulationTest, AModelWithoutAPolicyIsPhysics) {
  const auto simulation = Open(Pendulum());
  const SimSnapshot snapshot = AdvanceTo(*simulation, 5);
  EXPECT_EQ(snapshot.policy->horizon, 0);
  EXPECT_TRUE(snapshot.log->empty());
  EXPECT_TRUE(snapshot.coverage->empty());
  EXPECT_NE(snapshot.qpos[0], 0);
  EXPECT_THROW(simulation->SetCheckpoint(folder_ / "checkpoint"), mjp::Error);
}

TEST_F(ModelSimulationTest, WhatDoesNotFitIsRefusedWithTheReason) {
  for (const auto& [file, reason] :
       {std::pair(WithPlugin("nowhere"), "nowhere"), std::pair(folder_ / "none.xml", "none.xml")}) {
    try {
      Open(file);
      ADD_FAILURE() << file << " was opened";
    } catch (const mjp::Error& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(Open(WithPlugin(folder_ / "checkpoint", "side")), mjp::Error);
}

TEST_F(ModelSimulationTest, AThreadOpensModelsAndKeepsWhatItHas) {
  SimulationThread thread(Open(Pendulum()));
  const auto pendulum = thread.snapshot()->model;
  thread.Send(ModelCommand{folder_ / "none.xml"});
  thread.Flush();
  EXPECT_NE(thread.snapshot()->message, "");
  EXPECT_EQ(thread.snapshot()->model, pendulum);
  thread.Send(ModelCommand{WithPlugin()});
  thread.Send(SpeedCommand{0});
  thread.Send(RunCommand{9});
  thread.Flush();
  EXPECT_NE(thread.snapshot()->model, pendulum);
  while (thread.snapshot()->step < 9) ASSERT_EQ(thread.snapshot()->message, "");
  EXPECT_EQ(thread.snapshot()->log->size(), 2u);
}

}  // namespace
}  // namespace mjp::app
