#include "apps/train/recipe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "apps/train/data/recordings.h"
#include "apps/train/optimisation/known_actions.h"
#include "base/error.h"
#include "base/file.h"
#include "base/npy.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/unet/unet_model.h"
#include "tasks/pusht/pictures/raster_source.h"
#include "tests/apps/train/recipe_fixture.h"
#include "tests/support/error_of.h"

namespace mjp::app {
namespace {

TEST_F(RecipeTest, AStoppedTrainingGoesOnToTheSameBits) {
  EXPECT_TRUE(Train(Options("whole"), never_));
  EXPECT_FALSE(TrainUntil(Options("stopped"), "step 2"));
  EXPECT_NE(Weights("stopped"), Weights("whole"));
  EXPECT_TRUE(Train(Options("stopped"), never_));
  EXPECT_EQ(Weights("stopped"), Weights("whole"));
}

TEST_F(RecipeTest, APlannerThatFailsIsAnErrorBeforeTheFirstStepAndAfterTheLast) {
  TrainOptions options = Options("run");
  const std::string other = options.out + "/demonstrations/demonstrations.json";
  std::filesystem::create_directories(options.out + "/demonstrations");
  folder_.Write("run/demonstrations/demonstrations.json", "{}");
  options.steps = 2;
  for (const int64_t rows : {16, 64}) {  // fewer than there are, and more
    options.data.rows = rows;
    EXPECT_THAT(mjp_test::ErrorOf([&] { Train(options, never_); }), ::testing::HasSubstr(other))
        << rows;
  }
}

TEST_F(RecipeTest, APlannerThatFailsAtTheEndCostsNoStep) {
  TrainOptions options = Options("run");
  options.data.rows = 16;
  options.steps = options.log_every = 2;
  const std::string folder = options.out + "/demonstrations";
  std::filesystem::create_directories(folder);
  folder_.Write("run/demonstrations/demonstrations.json", "{}");  // of another planner
  const std::string log = folder + "/progress.txt";
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);  // holds the planner until somebody reads
  std::atomic<bool> ended = false;
  std::thread reader([&] {
    const std::filesystem::path steps = options.out + "/log.jsonl";
    std::error_code none;
    while (!ended && !(std::filesystem::file_size(steps, none) > 0 && !none))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const FileDescriptor descriptor(open(log.c_str(), O_RDONLY | O_NONBLOCK));
    while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_NE(mjp_test::ErrorOf([&] { Train(options, never_); }), "");
  ended = true;
  reader.join();
  std::filesystem::remove_all(folder);
  std::ostringstream progress;
  EXPECT_TRUE(Train(options, never_, progress));
  EXPECT_THAT(progress.str(), ::testing::HasSubstr("from step 2"));
  EXPECT_NO_THROW(mjp::LoadCheckpoint(options.out + "/checkpoint"));
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
  options.step.prefix_share = 1;
  EXPECT_THROW(Train(options, never_), mjp::Error);  // a finished run does not become one
  known.step.prefix_share = 0.5;
  EXPECT_TRUE(Train(known, never_));
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
