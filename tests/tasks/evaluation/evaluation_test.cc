#include "tasks/evaluation/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/act/act_model.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/unet/unet_model.h"
#include "tasks/evaluation/run_text.h"
#include "tasks/pusht/evaluation/judge.h"
#include "tasks/pusht/evaluation/pusht_task.h"
#include "tasks/pusht/physics/batch_physics.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/pusht/pictures/raster_source.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class EvaluationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new mjp_test::TempDir;
    mjp_test::WriteSmallCheckpoint(folder_->path() + "/policy");
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  void SetUp() override {
    options_.checkpoint = folder_->path() + "/policy";
    options_.episodes = 5;
    options_.max_steps = 30;
    options_.policy.backend = mjp::Backend::kCpu;
    options_.policy.sampler = {mjp::SamplerKind::kDdim, 4, 0, 0};
    options_.policy.batch = 3;
    options_.policy.scene_drawer = &mjp::FlatSceneDrawer();
  }

  std::unique_ptr<mjp::Policy> MakePolicy() const {
    return mjp::Policy::Create(mjp::LoadCheckpoint(options_.checkpoint), options_.policy);
  }

  EvaluationResult Run() const {
    return Evaluate(
        PushtTask(pusht_), options_, MakePolicy(), ShardIndices(options_),
        [](const EpisodeResult&) {}, never_);
  }

  // All that must not change between runs of the same configuration. The smoothness is what the
  // batch alone measures.
  std::string Fingerprint(bool with_smoothness = false) const {
    std::string text;
    for (EpisodeResult e : Run().episodes) {
      e.seconds = 0;
      if (!with_smoothness) e.smoothness.reset();
      text += ToJsonLine(e) + "\n";
    }
    return text;
  }

  static mjp_test::TempDir* folder_;
  std::atomic<bool> never_{false};
  EvaluationOptions options_;
  PushtOptions pusht_;
};
mjp_test::TempDir* EvaluationTest::folder_ = nullptr;

TEST_F(EvaluationTest, ProtocolOfTheBenchmark) {
  const EvaluationResult result = Run();
  ASSERT_EQ(result.episodes.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    const EpisodeResult& e = result.episodes[i];
    EXPECT_EQ(e.index, i);
    EXPECT_EQ(e.seed, 100000u + i);
    EXPECT_TRUE(e.valid);
    EXPECT_EQ(e.steps, 30);
    EXPECT_EQ(e.decisions, 4);  // at steps 0, 8, 16, 24
    EXPECT_EQ(e.measures.at(0).name, "coverage");
    EXPECT_GE(e.measures.at(0).max, e.measures.at(0).final);
    EXPECT_GE(e.sum_reward, e.max_reward);
  }
}

TEST_F(EvaluationTest, PicturesUnlikeThoseOfItsTrainingAreInRunJson) {
  const auto run = [&] { return RunText(PushtTask(pusht_), options_, *MakePolicy(), "0"); };
  pusht_.renderer = RendererKind::kMujoco;
  EXPECT_THAT(run(), Not(HasSubstr("unlike_training")));  // nothing is known of its training
  options_.checkpoint = folder_->path() + "/drawn";
  mjp::Checkpoint drawn = *mjp::LoadCheckpoint(folder_->path() + "/policy");
  auto network = std::make_shared<mjp::UnetModel>(mjp::UnetOf(drawn));
  network->looks[drawn.config.cameras[0].name] = RasterLook();
  drawn.network = network;
  mjp::WriteCheckpoint(options_.checkpoint, drawn, mjp::WeightFormat::kF16);
  EXPECT_THAT(run(), HasSubstr("\"unlike_training\": \"the policy sees other pictures than its "
                               "training did: observation.image, drawn by raster then, by "
                               "mujoco now"));
  pusht_.renderer = RendererKind::kRaster;
  EXPECT_THAT(run(), Not(HasSubstr("unlike_training")));
}

TEST_F(EvaluationTest, DecisionsAreSeenWithTheirChunks) {
  options_.episodes = 1;
  std::vector<State> states;
  Target held;
  const auto see = [&](const Decision& d) {
    ASSERT_EQ(d.chunk.size(), 32u);
    const State state = FromNumbers(d.state), previous = FromNumbers(d.previous);
    const bool start = states.empty();
    // at the start the agent is held where it is; later by what the chunk before said last
    EXPECT_EQ(d.action[0], start ? state.agent_x : held.x);
    EXPECT_EQ(d.action[1], start ? state.agent_y : held.y);
    EXPECT_EQ(start, previous.agent_x == state.agent_x && previous.agent_y == state.agent_y);
    held = {d.chunk[2 * 8], d.chunk[2 * 8 + 1]};  // actions 1 to 8 are executed
    states.push_back(state);
  };
  const EvaluationResult result = Evaluate(
      PushtTask(), options_, MakePolicy(), ShardIndices(options_), [](const EpisodeResult&) {},
      never_, see);
  EXPECT_EQ(states.size(), static_cast<size_t>(result.episodes[0].decisions));
}

TEST_F(EvaluationTest, AnEpisodeGoesOnToItsEndCoverage) {
  pusht_.success_coverage = -1;  // any state
  for (const EpisodeResult& e : Run().episodes) EXPECT_EQ(e.steps, 1);
  pusht_.end_coverage = 2;  // no state
  for (const EpisodeResult& e : Run().episodes) {
    EXPECT_EQ(e.success_step, 1);
    EXPECT_EQ(e.steps, 30);
  }
}

TEST_F(EvaluationTest, SameBitsWhateverTheBatchAndThreads) {
  const std::string reference = Fingerprint(true);
  for (const int batch : {1, 2, 5}) {
    for (const int threads : {1, 3}) {
      options_.policy.batch = batch;
      options_.policy.threads = threads;
      EXPECT_EQ(Fingerprint(true), reference) << "batch " << batch << ", threads " << threads;
    }
  }
}

TEST_F(EvaluationTest, PluginAndBatchGiveTheSameEpisodes) {
  const std::string reference = Fingerprint();
  options_.through = Through::kPlugin;
  EXPECT_EQ(Fingerprint(), reference);
  options_.policy.threads = 2;
  EXPECT_EQ(Fingerprint(), reference);
}

TEST_F(EvaluationTest, PluginAndBatchAgreeUnderLatencyAndShortChunks) {
  options_.conditions.latency = 2;
  options_.action_steps = 3;
  const std::string reference = Fingerprint();
  options_.through = Through::kPlugin;
  EXPECT_EQ(Fingerprint(), reference);
}

// a decision in every control step, or nearly: several are on their way
TEST_F(EvaluationTest, PluginAndBatchAgreeWhereDecisionsOverlap) {
  options_.max_steps = 12;
  options_.episodes = 2;
  options_.conditions.latency = 4;
  std::set<std::string> all;
  for (const int action_steps : {1, 3}) {
    options_.action_steps = action_steps;
    for (const int way : {0, 1, 2}) {  // plain, with a prefix, refining the plan before
      options_.policy.sampler.prefix = way > 0;
      options_.policy.sampler.warm_start = way > 1 ? 1 : 0;
      options_.through = Through::kBatch;
      const std::string reference = Fingerprint();
      all.insert(reference);
      options_.through = Through::kPlugin;
      EXPECT_EQ(Fingerprint(), reference) << action_steps << " actions, way " << way;
    }
  }
  EXPECT_EQ(all.size(), 6u) << "each way is another";
}

TEST_F(EvaluationTest, PluginAndBatchAgreeWhereChunksAreFollowed) {
  options_.max_steps = 12;
  options_.episodes = 2;
  options_.action_steps = 2;
  const std::string plain = Fingerprint();
  options_.replan_beyond = 1e-3;  // less than any two chunks of this policy differ by
  EXPECT_EQ(Fingerprint(), plain);
  std::set<std::string> all = {plain};
  for (const int latency : {0, 3}) {
    options_.conditions.latency = latency;
    for (const double beyond : {480.0, 1e6}) {  // some chunks depart, none does
      options_.replan_beyond = beyond;
      options_.policy.batch = 3;
      options_.through = Through::kBatch;
      const std::string reference = Fingerprint();
      all.insert(reference);
      options_.policy.batch = 1;
      EXPECT_EQ(Fingerprint(), reference) << latency << " " << beyond;
      options_.through = Through::kPlugin;
      EXPECT_EQ(Fingerprint(), reference) << latency << " " << beyond;
    }
  }
  EXPECT_EQ(all.size(), 5u) << "each is another";
  options_.action_steps = 8;
  EXPECT_THROW(Run(), mjp::Error);
}

// With two actions for each decision, acting after three control steps, the chunk before the last
// one acts as a decision begins: four control steps old, for three further ones.
TEST_F(EvaluationTest, AChunkBeginsWithWhatIsExecutedUntilItActs) {
  options_.episodes = 1;
  options_.action_steps = 2;
  options_.conditions.latency = 3;
  options_.policy.sampler.prefix = true;
  std::vector<std::vector<float>> chunks;
  Evaluate(
      PushtTask(), options_, MakePolicy(), ShardIndices(options_), [](const EpisodeResult&) {},
      never_, [&](const Decision& d) { chunks.emplace_back(d.chunk.begin(), d.chunk.end()); });
  ASSERT_EQ(chunks.size(), 15u);
  for (size_t i = 2; i < chunks.size(); ++i) {
    for (size_t k = 0; k < 2 * 4; ++k)  // the row before the first action, and three actions
      EXPECT_NEAR(chunks[i][k], chunks[i - 2][k + 2 * 4], 1e-3) << i << ", " << k;
    EXPECT_NE(chunks[i][2 * 4], chunks[i - 2][2 * 8]);
  }
}

// A decision in every step that acts after three, and one in every second step.
TEST_F(EvaluationTest, ADecisionKnowsWhatIsExecutedBeforeItActs) {
  options_.episodes = 1;
  options_.conditions.latency = 3;
  options_.policy.sampler.prefix = true;
  for (const int action_steps : {1, 2}) {
    options_.action_steps = action_steps;
    const size_t unknown = action_steps == 1 ? 3 : 2;  // decisions before a chunk acts
    std::vector<std::vector<float>> ahead;
    std::vector<std::vector<double>> executed;
    Evaluate(
        PushtTask(), options_, MakePolicy(), ShardIndices(options_), [](const EpisodeResult&) {},
        never_,
        [&](const Decision& d) {
          ahead.emplace_back(d.ahead.begin(), d.ahead.end());
          executed.emplace_back(d.action.begin(), d.action.end());
          EXPECT_EQ(d.prefix.size(), ahead.size() <= unknown ? 0u : 2u * 4);
        });
    ASSERT_GT(ahead.size(), 10u);
    const int behind = action_steps == 1 ? 3 : 1;  // decisions on, of the last action that is seen
    for (size_t i = 0; i + behind < ahead.size(); ++i) {
      ASSERT_EQ(ahead[i].size(), 2u * 3);
      for (int c = 0; c < 2; ++c) {
        const size_t last = 2 * (behind * action_steps - 1) + c;
        EXPECT_EQ(ahead[i][last], executed[i + behind][c]) << action_steps << ", " << i;
      }
    }
  }
}

TEST_F(EvaluationTest, RefusesALatencyThatAChunkDoesNotLast) {
  options_.action_steps = 4;
  options_.conditions.latency = 11;  // 15 actions less 4
  options_.max_steps = 4;
  EXPECT_EQ(Run().episodes.size(), 5u);
  options_.conditions.latency = 12;
  EXPECT_THROW(Run(), mjp::Error);
}

// a policy of another type, whose chunks of all control steps are ensembled
TEST_F(EvaluationTest, PluginAndBatchEnsembleAlike) {
  const mjp_test::TempDir folder;
  mjp::ActPolicyConfig config = mjp_test::SmallActConfig();
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.state_dim = config.action_dim = 2;
  config.environment_dim = 0;
  config.n_action_steps = 1;
  mjp::Checkpoint checkpoint = *mjp_test::ActCheckpoint(config);
  checkpoint.stats.state = {mjp::Normalization::kMinMax, {0, 0}, {512, 512}};
  checkpoint.stats.action = checkpoint.stats.state;
  mjp::WriteCheckpoint(folder / "plain", checkpoint, mjp::WeightFormat::kF32);
  checkpoint.config.temporal_ensemble = 0.1;
  auto network = std::make_shared<mjp::ActModel>(mjp::ActOf(checkpoint));
  network->config.temporal_ensemble = 0.1;
  checkpoint.network = network;
  mjp::WriteCheckpoint(folder / "policy", checkpoint, mjp::WeightFormat::kF32);
  options_.policy.sampler = {};
  options_.max_steps = 12;
  options_.episodes = 2;
  options_.checkpoint = folder / "plain";
  const std::string plain = Fingerprint();
  options_.checkpoint = folder / "policy";
  const std::string reference = Fingerprint();
  EXPECT_NE(reference, plain);
  options_.policy.batch = 1;
  options_.policy.threads = 2;
  EXPECT_EQ(Fingerprint(), reference);
  options_.through = Through::kPlugin;
  EXPECT_EQ(Fingerprint(), reference);
  options_.action_steps = 2;
  EXPECT_THROW(Run(), mjp::Error);
}

TEST_F(EvaluationTest, HeldNoiseDependsOnTheEpisodeAlone) {
  options_.max_steps = 10;
  options_.action_steps = 1;
  const std::string plain = Fingerprint();
  options_.policy.sampler.hold_noise = 4;
  const std::string held = Fingerprint();
  EXPECT_NE(held, plain);
  options_.policy.batch = 2;
  options_.policy.threads = 3;
  EXPECT_EQ(Fingerprint(), held);
  options_.through = Through::kPlugin;
  EXPECT_EQ(Fingerprint(), held);
}

TEST_F(EvaluationTest, SeedsAreNotPositions) {
  const std::vector<EpisodeResult> all = Run().episodes;
  options_.seed += 2;
  options_.episodes = 1;
  EXPECT_EQ(Run().episodes[0].hash, all[2].hash);
}

TEST_F(EvaluationTest, ShardsAddUpToTheWhole) {
  const std::vector<EpisodeResult> all = Run().episodes;
  options_.shard_count = 2;
  for (options_.shard_index = 0; options_.shard_index < 2; ++options_.shard_index) {
    for (const EpisodeResult& e : Run().episodes) {
      EXPECT_EQ(e.index % 2, options_.shard_index);
      EXPECT_EQ(e.hash, all[e.index].hash);
    }
  }
}

TEST_F(EvaluationTest, DisturbancesActAndRepeat) {
  const std::string plain = Fingerprint();
  for (double Conditions::*field : {&Conditions::picture_noise, &Conditions::action_noise}) {
    options_.conditions = {};
    options_.conditions.*field = 5;
    const std::string disturbed = Fingerprint();
    EXPECT_NE(disturbed, plain);
    EXPECT_EQ(Fingerprint(), disturbed);
  }
  options_.conditions = {};
  pusht_.push = 20;
  const std::string pushed = Fingerprint();
  EXPECT_NE(pushed, plain);
  pusht_.pushes = 100;
  EXPECT_NE(Fingerprint(), pushed);
  options_.through = Through::kPlugin;
  EXPECT_THROW(Run(), mjp::Error);
}

TEST_F(EvaluationTest, StopsBetweenDecisions) {
  std::atomic<bool> stop{false};
  int seen = 0;
  const EvaluationResult result = Evaluate(
      PushtTask(), options_, MakePolicy(), ShardIndices(options_),
      [&](const EpisodeResult&) {
        ++seen;
        stop = true;
      },
      stop);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(static_cast<int>(result.episodes.size()), seen);
  EXPECT_LT(seen, 5);
}

TEST_F(EvaluationTest, ChunkTooShortIsAnError) {
  options_.action_steps = 16;
  EXPECT_THROW(Run(), mjp::Error);
}

}  // namespace
}  // namespace mjp::app
