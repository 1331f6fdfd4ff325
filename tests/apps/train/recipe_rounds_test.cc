// Rounds of the student's episodes in a training: when they are played, and what they leave.

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "apps/train/run_folder.h"
#include "base/error.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/safetensors.h"
#include "tasks/pusht/environments.h"
#include "tests/apps/train/earlier_state.h"
#include "tests/apps/train/recipe_fixture.h"

namespace mjp::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RecipeRoundsTest : public RecipeTest {
 protected:
  void ExpectRefused(const TrainOptions& options, const std::string& why) const {
    try {
      Train(options, never_);
      ADD_FAILURE() << why;
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
};

TEST_F(RecipeRoundsTest, RoundsAddTheStudentsStatesAndAreNotPlayedTwice) {
  TrainOptions options = OptionsOfRounds("rounds", 2, 2, 1);
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
  options.steps = 6;
  EXPECT_TRUE(Train(options, never_));  // nor of a longer training
  EXPECT_EQ(ReadFile(folder_ / "rounds/rounds/rows-00001.npy", kLimit), rows);
}

TEST_F(RecipeRoundsTest, EachIsPlayedHoweverLongItsLabelsTake) {
  TrainOptions options = OptionsOfRounds("run", 3, 2, 0);
  options.data.planner.samples = 512;
  options.steps = 8;
  std::ostringstream progress;
  EXPECT_TRUE(Train(options, never_, progress));
  EXPECT_EQ(LoadDemonstrations(folder_ / "run/rounds").size(), 3u * 2 * 38);
  EXPECT_THAT(progress.str(), Not(HasSubstr("only")));
}

TEST_F(RecipeRoundsTest, AStopEndsTheWaitForLabelsWithTheStateSaved) {
  TrainOptions options = OptionsOfRounds("run", 5, 2, 0);
  options.steps = 6;  // a round after each of the first five
  options.save_every = 1e9;
  options.data.threads = 1;
  options.data.planner.samples = 4096;  // labels take many seconds
  const std::string state = options.out + "/state.safetensors";
  std::atomic<bool> stop = false, ended = false;
  std::thread stopper([&] {
    const auto waits = [&] {
      return std::filesystem::exists(state) &&
             mjp::SafetensorsFile::Read(state).Integers("progress").at(0) >= 2;
    };
    while (!ended && !waits()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  EXPECT_FALSE(Train(options, stop));
  ended = true;
  stopper.join();
  EXPECT_FALSE(std::filesystem::exists(options.out + "/rounds/streams.jsonl"));  // of the first
  options.data.planner = SmallPlanner();
  EXPECT_TRUE(Train(options, never_));
}

TEST_F(RecipeRoundsTest, AStopEndsTheWaitForTheLastLabelsWhichAreMadeByTheNextCall) {
  TrainOptions options = OptionsOfRounds("run", 1, 2, 0);
  options.save_every = 1e9;
  options.data.threads = 1;
  options.data.planner.samples = 4096;  // labels take many seconds
  const std::string state = options.out + "/state.safetensors";
  std::atomic<bool> stop = false, ended = false;
  std::thread stopper([&] {
    const auto waits = [&] {
      return std::filesystem::exists(state) &&
             mjp::SafetensorsFile::Read(state).Integers("progress").at(0) == options.steps;
    };
    while (!ended && !waits()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  EXPECT_FALSE(Train(options, stop));
  ended = true;
  stopper.join();
  EXPECT_FALSE(std::filesystem::exists(options.out + "/rounds/streams.jsonl"));
  options.data.planner = SmallPlanner();
  EXPECT_TRUE(Train(options, never_));
  EXPECT_EQ(LoadDemonstrations(folder_ / "run/rounds").size(), 2u * 38);
}

// Else its rows would be missing, its checkpoint be replaced by an unscored one, and the last
// evaluation be of starts that it has learnt from.
TEST_F(RecipeRoundsTest, ARunDoesNotGoOnWithFewerRoundsThanItHas) {
  TrainOptions options = OptionsOfRounds("run", 2, 1, 0);
  EXPECT_TRUE(Train(options, never_));
  const std::string weights = Weights("run");
  options.steps = 6;
  for (const int count : {0, 1}) {
    options.rounds.count = count;
    ExpectRefused(options, "rounds: holds 2 rounds of this run, more than --rounds " +
                               std::to_string(count) + "; go on with at least as many");
  }
  std::filesystem::remove_all(options.out + "/rounds");  // as where no labels were made
  options.rounds.count = 0;
  ExpectRefused(options, "the run's checkpoint is the best of its rounds; go on with --rounds");
  EXPECT_TRUE(Weights("run") == weights);
}

TEST_F(RecipeRoundsTest, ARunGoesOnWithFewerEpisodes) {
  TrainOptions options = OptionsOfRounds("run", 2, 8, 0);
  EXPECT_TRUE(Train(options, never_));
  options.rounds.episodes = 1;
  options.rounds.count = 3;
  options.steps = 8;
  std::ostringstream progress;
  EXPECT_TRUE(Train(options, never_, progress));
  EXPECT_THAT(progress.str(), HasSubstr(std::to_string(32 + 2 * 8 * 38) + " rows"));
  EXPECT_EQ(LoadDemonstrations(folder_ / "run/rounds").size(), (2u * 8 + 1) * 38);
}

// Those of late episodes lay where the plain ones of round 50 began.
TEST_F(RecipeRoundsTest, RoundsHaveStartsOfTheirOwn) {
  TrainOptions options = Options("run");
  options.step.prefix_share = 0.5;
  options.steps = 1;
  EXPECT_TRUE(Train(options, never_));
  const auto student = mjp::LoadCheckpoint(options.out + "/checkpoint");
  RoundOptions rounds;
  rounds.episodes = 1;
  rounds.disturbed_episodes = 0;
  rounds.late_episodes = 3;
  const auto starts = [&](int round) {
    const Rounds played(rounds, PolicyOfRounds(false, 0, {mjp::SamplerKind::kDdim, 2}));
    std::set<std::vector<float>> found;
    for (const DemonstrationRow& row : played.Observe(student, round, never_).rows) {
      const std::vector<float> state(row.state, row.state + 5);
      if (std::equal(row.previous, row.previous + 5, row.state)) found.insert(state);
    }
    return found;
  };
  std::set<std::vector<float>> all = starts(0);
  const size_t first = all.size();
  EXPECT_GE(first, 4u);
  rounds.late_episodes = 0;
  const auto later = starts(50);
  EXPECT_GE(later.size(), 1u);
  all.insert(later.begin(), later.end());
  EXPECT_EQ(all.size(), first + later.size());
}

// Its state says how many episodes of its best round succeeded, and not of how many.
TEST_F(RecipeRoundsTest, ACheckpointOfAnEarlierBuildIsNotReplacedByAClearlyWorseOne) {
  TrainOptions options = OptionsOfRounds("run", 1, 8, 0);
  EXPECT_TRUE(Train(options, never_));
  const std::string path = options.out + "/state.safetensors", weights = Weights("run");
  WriteAsEarlierBuild(path, path, 8);
  options.steps = 6;
  EXPECT_TRUE(Train(options, never_));
  EXPECT_TRUE(Weights("run") == weights) << "none of its episodes succeeds";
}

TEST_F(RecipeRoundsTest, ATrainingThatIsTooShortForThemSaysSo) {
  std::ostringstream progress;
  EXPECT_TRUE(Train(OptionsOfRounds("run", 5, 1, 0), never_, progress));
  EXPECT_THAT(progress.str(), HasSubstr("only 3 of 5 rounds were played"));
}

TEST_F(RecipeRoundsTest, ATrainingIsNotCompleteWithoutItsLastEvaluation) {
  TrainOptions options = OptionsOfRounds("run", 1, 1, 0);
  options.log_every = 1;
  EXPECT_FALSE(TrainUntil(options, "100.0 %"));
  std::ostringstream progress;
  EXPECT_TRUE(Train(options, never_, progress));
  EXPECT_THAT(progress.str(), HasSubstr("round 1: "));
}

TEST_F(RecipeRoundsTest, ATrainingAnewHasRoundsOfItsOwn) {
  TrainOptions options = OptionsOfRounds("run", 1, 1, 0);
  const std::string rows = options.out + "/rounds/rows-00000.npy";
  const auto train = [&] {
    const FileDescriptor lock = OpenRunFolder(options.out);
    EXPECT_TRUE(Train(options, never_));
    return ReadFile(rows, kLimit);
  };
  const std::string first = train();
  std::filesystem::remove(options.out + "/state.safetensors");
  options.seed = 1;
  EXPECT_TRUE(train() != first) << "the same rows";
}

TEST_F(RecipeRoundsTest, ATrainingIsNotCompleteWithoutTheLessonsOfItsLastRound) {
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
TEST_F(RecipeRoundsTest, ARoundsCheckpointIsNotThereBeforeItsState) {
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

TEST_F(RecipeRoundsTest, RoundsArePlayedInTheOriginalPhysicsToo) {
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

TEST_F(RecipeRoundsTest, LateDecisionsTeachWhatIsExecutedMeanwhileAndThenAPlan) {
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
  options.rounds.late_episodes = 0;
  ExpectRefused(options, "late: holds late decisions of this run; go on with --late-episodes");
}

}  // namespace
}  // namespace mjp::app
