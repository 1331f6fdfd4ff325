#include "apps/train/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "apps/train/data/recordings.h"
#include "apps/train/optimisation/known_actions.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/npy.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/unet/unet_model.h"
#include "tasks/pusht/environments.h"
#include "tasks/pusht/pictures/raster_source.h"
#include "tasks/pusht/planner/demonstrations.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

constexpr size_t kLimit = 64 << 20;

// A training of seconds on the CPU: a tiny network, data that is finished, a length in steps.
class RecipeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    DemonstrateOptions demonstrate;
    demonstrate.out = folder_ / "data";
    demonstrate.rows = demonstrate.stream.rows = 32;
    demonstrate.stream.planner = SmallPlanner();
    std::ostringstream log;
    RunDemonstrate(demonstrate, log, never_);
  }

  static PlannerOptions SmallPlanner() {
    PlannerOptions planner;
    planner.samples = 64;
    planner.rounds = 2;
    return planner;
  }

  TrainOptions Options(const std::string& name) const {
    TrainOptions options;
    options.out = folder_ / name;
    options.device = "cpu";
    options.architecture.unet_channels = {32, 64};
    options.architecture.stage_channels = {32, 32};
    options.architecture.stem_channels = 16;
    options.data.folders = {folder_ / "data"};
    options.data.planner = SmallPlanner();
    options.step.batch = options.step.draws = 2;
    options.steps = 4;
    options.log_every = 2;
    return options;
  }

  // The same, shorter, with rounds of the student's episodes.
  TrainOptions OptionsOfRounds(const std::string& name, int count, int episodes,
                               int disturbed) const {
    TrainOptions options = Options(name);
    options.rounds.count = count;
    options.rounds.episodes = episodes;
    options.rounds.disturbed_episodes = disturbed;
    options.steps = 3;
    return options;
  }

  bool Train(const TrainOptions& options, const std::atomic<bool>& stop) const {
    Ranks ranks(1);
    std::ostringstream progress;
    return mjp::app::Train(options, ranks, progress, stop);
  }

  // Trains until the first line of progress that begins with `text`.
  bool TrainUntil(const TrainOptions& options, const std::string& text) const {
    class Watch : public std::stringbuf {
     public:
      Watch(std::string text, std::atomic<bool>& stop) : text_(std::move(text)), stop_(stop) {}
      int sync() override {
        if (str().find(text_) != std::string::npos) stop_ = true;
        return 0;
      }

     private:
      std::string text_;
      std::atomic<bool>& stop_;
    };
    std::atomic<bool> stop = false;
    Watch watch(text, stop);
    std::ostream progress(&watch);
    Ranks ranks(1);
    return mjp::app::Train(options, ranks, progress, stop);
  }

  std::string Weights(const std::string& name) const {
    return ReadFile(folder_ / (name + "/checkpoint/model.safetensors"), kLimit);
  }

  mjp_test::TempDir folder_;
  const std::atomic<bool> never_ = false;
};

TEST_F(RecipeTest, AStoppedTrainingGoesOnToTheSameBits) {
  EXPECT_TRUE(Train(Options("whole"), never_));
  EXPECT_FALSE(TrainUntil(Options("stopped"), "step 2"));
  EXPECT_NE(Weights("stopped"), Weights("whole"));
  EXPECT_TRUE(Train(Options("stopped"), never_));
  EXPECT_EQ(Weights("stopped"), Weights("whole"));
}

TEST_F(RecipeTest, ARunIsNotContinuedWithAnotherPrediction) {
  TrainOptions options = Options("run");
  EXPECT_TRUE(Train(options, never_));
  const std::string weights = Weights("run");
  options.architecture.prediction = "v";
  options.steps = 6;
  try {
    Train(options, never_);
    ADD_FAILURE() << "continued";
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
    EXPECT_NE(std::string(error.what()).find("--prediction epsilon, not v"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(Weights("run"), weights);
}

TEST_F(RecipeTest, RoundsAddTheStudentsStatesAndAreNotPlayedTwice) {
  const TrainOptions options = OptionsOfRounds("rounds", 2, 2, 1);
  EXPECT_TRUE(Train(options, never_));
  const std::string log = ReadFile(folder_ / "rounds/log.jsonl", kLimit);
  const std::string rows = ReadFile(folder_ / "rounds/rounds/rows-00001.npy", kLimit);
  // nobody solves it untrained: 38 decisions in 300 control steps of a plain episode, and 75 of the
  // disturbed one, which decides twice as often
  EXPECT_EQ(LoadDemonstrations(folder_ / "rounds/rounds").size(), 2u * (2 * 38 + 75));
  for (const char* text : {"\"round\":0", "\"round\":1", "\"round\":2", "\"median_steps\""}) {
    EXPECT_NE(log.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(ReadFile(folder_ / "rounds/curves.png", kLimit).substr(1, 3), "PNG");
  EXPECT_NO_THROW(mjp::LoadCheckpoint(folder_ / "rounds/checkpoint"));

  EXPECT_TRUE(Train(options, never_));  // nothing is left to do but the last evaluation
  EXPECT_EQ(ReadFile(folder_ / "rounds/rounds/rows-00001.npy", kLimit), rows);
}

TEST_F(RecipeTest, ATrainingIsNotCompleteWithoutTheLessonsOfItsLastRound) {
  const TrainOptions options = OptionsOfRounds("run", 1, 1, 0);
  const std::string blocked = folder_ / "run/rounds/rows-00000.npy";
  std::filesystem::create_directories(blocked);
  try {
    Train(options, never_);
    ADD_FAILURE() << "it is complete";
  } catch (const mjp::Error& error) {
    EXPECT_NE(std::string(error.what()).find(blocked), std::string::npos) << error.what();
  }
  std::filesystem::remove(blocked);
  EXPECT_TRUE(Train(options, never_));
  EXPECT_EQ(LoadDemonstrations(folder_ / "run/rounds").size(), 38u);
}

// As a killed run leaves it: its checkpoint is of a round that its state knows.
TEST_F(RecipeTest, ARoundsCheckpointIsNotThereBeforeItsState) {
  TrainOptions options = OptionsOfRounds("run", 1, 1, 0);
  options.save_every = 1e9;
  std::filesystem::create_directory(folder_ / "run");
  folder_.Write("run/checkpoint", "no folder");
  EXPECT_THROW(Train(options, never_), mjp::Error);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/rounds/streams.jsonl"));  // played again
  const auto state = mjp::SafetensorsFile::Read(folder_ / "run/state.safetensors");
  EXPECT_EQ(state.Integers("progress").at(0), 2);  // the step before the round
  std::filesystem::remove(folder_ / "run/checkpoint");
  EXPECT_TRUE(Train(options, never_));
  EXPECT_NO_THROW(mjp::LoadCheckpoint(folder_ / "run/checkpoint"));
}

TEST_F(RecipeTest, RoundsArePlayedInTheOriginalPhysicsToo) {
  try {
    CheckPhysics(PhysicsKind::kChipmunk);
  } catch (const mjp::Error& error) {
    GTEST_SKIP() << error.what();
  }
  TrainOptions options = Options("original");
  options.rounds.count = 1;
  options.rounds.episodes = 1;
  options.rounds.disturbed_episodes = 0;
  options.rounds.original_episodes = 2;
  options.steps = 3;
  EXPECT_TRUE(Train(options, never_));
  EXPECT_EQ(LoadDemonstrations(folder_ / "original/rounds").size(), 3u * 38);
}

TEST_F(RecipeTest, LateDecisionsTeachWhatIsExecutedMeanwhileAndThenAPlan) {
  TrainOptions options = Options("late");
  options.rounds.count = 1;
  options.rounds.episodes = 2;
  options.rounds.disturbed_episodes = 0;
  options.rounds.late_episodes = 2;
  options.step.prefix_share = 0.5;
  options.steps = 3;
  EXPECT_TRUE(Train(options, never_));
  EXPECT_EQ(LoadDemonstrations(folder_ / "late/rounds").size(), 2u * 38);
  const std::vector<DemonstrationRow> rows = LoadDemonstrations(folder_ / "late/late");
  EXPECT_GT(rows.size(), 100u);
  int starts = 0;
  for (const DemonstrationRow& row : rows) {
    const Point target = {row.previous_target[0], row.previous_target[1]};
    if (!std::equal(row.previous, row.previous + 5, row.state)) continue;
    if (target.x != row.state[0] || target.y != row.state[1]) continue;
    ++starts;  // nothing moves before the first chunk acts
    for (int i = 0; i < kLateSteps; ++i) {
      EXPECT_EQ(row.targets[i][0], row.state[0]) << i;
      EXPECT_EQ(row.targets[i][1], row.state[1]) << i;
    }
    EXPECT_NE(row.targets[kLateSteps][0], row.state[0]);
  }
  EXPECT_GE(starts, 2);
  EXPECT_TRUE(mjp::LoadCheckpoint(folder_ / "late/checkpoint")->config.trained_prefix);
  EXPECT_TRUE(Train(options, never_));  // goes on with the late rows, too
}

TEST(KnownActionsTest, OfLateRowsAllOfOthersAShare) {
  const at::Tensor late = at::tensor({0, 1}, at::kLong).to(at::kBool);
  const at::Tensor known = KnownActions(late, 3000, 0.25, 1, 16).sum({1, 2});  // (6000)
  const at::Tensor other = known.narrow(0, 0, 3000);
  EXPECT_TRUE((known.narrow(0, 3000, 3000) == 1 + kLateSteps).all().item<bool>());
  EXPECT_NEAR((other > 0).to(at::kFloat).mean().item<float>(), 0.25, 0.05);
  for (int rows = 1; rows <= 1 + kLateSteps; ++rows)
    EXPECT_NEAR((other == rows).to(at::kFloat).mean().item<float>(), 0.05, 0.02) << rows;
  const at::Tensor from_the_first = KnownActions(late, 1, 0, 1, 16).select(0, 1).view(-1);
  EXPECT_TRUE(from_the_first.narrow(0, 0, 1 + kLateSteps).all().item<bool>());
}

TEST(KnownActionsTest, TheLossCountsTheOthers) {
  const at::Tensor target = at::zeros({1, 4, 2}), known = at::tensor({1, 1, 0, 0}, at::kLong);
  const at::Tensor told = at::tensor({9, 9, 9, 9, 1, 1, 1, 3}, at::kFloat).view({1, 4, 2});
  EXPECT_EQ(ErrorOfUnknown(told, target, known.to(at::kBool).view({1, 4, 1})).item<float>(), 3);
}

TEST_F(RecipeTest, AShareOfKnownBeginningsIsAnotherTraining) {
  TrainOptions options = Options("plain"), known = Options("known");
  known.step.prefix_share = 1;
  EXPECT_TRUE(Train(options, never_));
  EXPECT_TRUE(Train(known, never_));
  EXPECT_NE(Weights("plain"), Weights("known"));
  EXPECT_FALSE(mjp::LoadCheckpoint(folder_ / "plain/checkpoint")->config.trained_prefix);
}

TEST_F(RecipeTest, RecordingsBecomeRows) {
  const std::vector<double> states = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  WriteNpy(folder_ / "person_state.npy", MakeNpy(states, {3, 5}));
  WriteNpy(folder_ / "person_action.npy",
           MakeNpy(std::vector<double>{20, 21, 22, 23, 24, 25}, {3, 2}));
  NpyArray ends;
  ends.type = NpyType::kInt64;
  ends.shape = {2};
  const int64_t values[] = {2, 3};
  ends.bytes.resize(sizeof(values));
  std::memcpy(ends.bytes.data(), values, sizeof(values));
  WriteNpy(folder_ / "person_episode_ends.npy", ends);
  const std::vector<DemonstrationRow> rows = LoadRecordings(folder_ / "person");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].previous[0], 1);         // a start is its own past
  EXPECT_EQ(rows[0].previous_target[1], 2);  // where the agent stays
  EXPECT_EQ(rows[1].previous[0], 1);
  EXPECT_EQ(rows[1].previous_target[0], 20);
  EXPECT_EQ(rows[0].targets[1][0], 22);
  EXPECT_EQ(rows[0].targets[14][0], 22);  // the episode's last, repeated
  EXPECT_EQ(rows[2].previous[4], 15);     // the second episode
  ends.shape = {1};
  ends.bytes.resize(sizeof(int64_t));
  WriteNpy(folder_ / "person_episode_ends.npy", ends);
  EXPECT_THROW(LoadRecordings(folder_ / "person"), mjp::Error);
}

TEST_F(RecipeTest, ADeviceThatIsNoNameOfOneIsAMistakeInTheCall) {
  TrainOptions options = Options("device");
  for (const char* name : {"gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1"}) {
    options.device = name;
    try {
      Train(options, never_);
      ADD_FAILURE() << name;
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kUsage) << error.what();
    }
  }
}

TEST_F(RecipeTest, TheCheckpointSaysWhatTheNetworkTells) {
  const std::map<std::string, mjp::PredictionType> predictions = {
      {"sample", mjp::PredictionType::kSample}, {"v", mjp::PredictionType::kVPrediction}};
  for (const auto& [name, prediction] : predictions) {
    TrainOptions options = Options(name);
    options.architecture.prediction = name;
    EXPECT_TRUE(Train(options, never_));
    const auto checkpoint = mjp::LoadCheckpoint(folder_ / (name + "/checkpoint"));
    EXPECT_EQ(mjp::UnetOf(*checkpoint).config.scheduler.prediction, prediction);
    EXPECT_EQ(mjp::UnetOf(*checkpoint).looks.at("observation.image"), RasterLook());
  }
  EXPECT_NE(Weights("sample"), Weights("v"));
  TrainOptions options = Options("other");
  options.architecture.prediction = "score";
  EXPECT_THROW(Train(options, never_), mjp::Error);
}

}  // namespace
}  // namespace mjp::app
