#include "tasks/results/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "tasks/recording/video.h"
#include "tasks/results/results_folder.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Five episodes in two shards: 0, 2, 4 in s0 and 1, 3 in s1.
class MergeTest : public ::testing::Test {
 protected:
  MergeTest() : path_(std::getenv("PATH")) {
    ::setenv("PATH", directory_.path().c_str(), 1);  // no ffmpeg: videos are .avi
    MakeShard("s0", "0/2", {0, 2, 4});
    MakeShard("s1", "1/2", {1, 3});
    options_.folders = {directory_ / "s0", directory_ / "s1"};
    options_.out = directory_ / "merged";
  }
  ~MergeTest() override { ::setenv("PATH", path_.c_str(), 1); }

  static EpisodeResult Episode(int index) {
    EpisodeResult e;
    e.index = index;
    e.seed = 100 + static_cast<uint32_t>(index);
    e.steps = 60;
    e.success_step = index == 3 ? -1 : 50;
    e.measures = {{"coverage", 0.9, 0.5}};
    e.sum_reward = 12.25;
    e.max_reward = 0.25 * (index % 5);
    e.hash = 7;
    return e;
  }
  void Log(const std::string& name, const std::vector<int>& episodes) const {
    std::string log;
    for (const int i : episodes) log += ToJsonLine(Episode(i)) + "\n";
    directory_.Write(name + "/episodes.jsonl", log);
  }
  void Run(const std::string& name, const std::string& shard, const std::string& more = "") const {
    directory_.Write(name + "/run.json", R"({"task": "pusht", "episodes": 5, "seed": 100, )" +
                                             more + R"("shard": ")" + shard + R"("})");
  }
  void MakeShard(const std::string& name, const std::string& shard,
                 const std::vector<int>& episodes) {
    fs::create_directories(directory_ / (name + "/videos"));
    Run(name, shard);
    Log(name, episodes);
    directory_.Write(name + "/eval_info.json", R"({"overall": {"eval_s": 2.5}})");
  }
  void WriteVideo(const std::string& stem) const {
    const auto writer = VideoWriter::Open(directory_ / stem, 64, 48, 10);
    for (int i = 0; i < 3; ++i) writer->Add(Picture(64, 48, static_cast<uint8_t>(20 * i)));
    writer->Close();
  }
  Json Summary() const { return ReadJson(directory_ / "merged/eval_info.json", {1 << 20, 16}); }

  // Expects an error with this code and text, and no results.
  void ExpectRefused(mjp::ExitCode code, const std::string& text) const {
    try {
      Merge(options_);
      ADD_FAILURE() << "merged; expected: " << text;
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
    EXPECT_FALSE(fs::exists(directory_ / "merged/eval_info.json"));
    EXPECT_FALSE(HoldsResults(options_.out));
  }

  const std::string path_;
  mjp_test::TempDir directory_;
  MergeOptions options_;
};

TEST_F(MergeTest, GivesWhatOneProcessWouldHaveWritten) {
  const MergeResult result = Merge(options_);
  EXPECT_EQ(result.figures.episodes, 5);
  EXPECT_EQ(result.figures.successes, 4);
  EXPECT_EQ(result.figures.mean_score, 0.5);
  EXPECT_EQ(result.task, "pusht");
  EXPECT_EQ(result.expected, 5);
  EXPECT_TRUE(result.weights_alone) << "no hashes of the checkpoint's files";
  std::string log;
  for (int i = 0; i < 5; ++i) log += ToJsonLine(Episode(i)) + "\n";
  const std::vector<uint8_t> bytes = mjp::ReadFile(directory_ / "merged/episodes.jsonl", 1 << 20);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), log);
  const Json summary = Summary();
  EXPECT_EQ(summary.at("overall").at("eval_s"), 5.0);
  EXPECT_EQ(summary.at("overall").at("eval_ep_s"), 1.0);
  EXPECT_EQ(summary.at("overall").at("n_episodes"), 5);
  EXPECT_EQ(summary.at("partial"), false);
  EXPECT_EQ(summary.at("run").at("shard"), "0/1");
}

TEST_F(MergeTest, KnowsTheCheckpointsFiles) {
  for (const char* shard : {"0", "1"}) {
    Run(std::string("s") + shard, std::string(shard) + "/2",
        R"("checkpoint_files": {"model.safetensors": "00"}, )");
  }
  EXPECT_FALSE(Merge(options_).weights_alone);
}

TEST_F(MergeTest, ShardsWithoutASummaryTookNoTime) {
  fs::remove(directory_ / "s0/eval_info.json");
  Merge(options_);
  EXPECT_EQ(Summary().at("overall").at("eval_s"), 2.5);
}

TEST_F(MergeTest, ASummaryThatIsNoneIsNamed) {
  directory_.Write("s1/eval_info.json", R"({"overall": {}})");
  ExpectRefused(mjp::ExitCode::kBadInput, "s1/eval_info.json: overall: \"eval_s\" is missing");
}

TEST_F(MergeTest, SummariesAreReadWithinBounds) {
  const auto nested = [](int depth) {
    return R"({"overall": {"eval_s": 2.5}, "more": )" + std::string(depth - 1, '[') +
           std::string(depth - 1, ']') + "}";
  };
  const std::string file = directory_.Write("s1/eval_info.json", nested(17));
  ExpectRefused(mjp::ExitCode::kBadInput, "s1/eval_info.json");
  fs::resize_file(file, (uintmax_t{1} << 30) + 1);  // a hole, no blocks
  ExpectRefused(mjp::ExitCode::kBadInput, "1073741824");
  directory_.Write("s1/eval_info.json", nested(16));
  Merge(options_);
  EXPECT_EQ(Summary().at("overall").at("eval_s"), 5.0);
}

TEST_F(MergeTest, CopiesTheVideosOfItsEpisodes) {
  WriteVideo("s0/videos/eval_episode_2");
  WriteVideo("s1/videos/eval_episode_1");
  WriteVideo("s1/videos/eval_episode_9");  // of no episode
  directory_.Write("s0/videos/eval_episode_0.avi", "torn");
  Merge(options_);
  const std::string videos = directory_ / "merged/videos/eval_episode_";
  EXPECT_THAT(Summary().at("overall").at("video_paths").get<std::vector<std::string>>(),
              ElementsAre(videos + "1.avi", videos + "2.avi"));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "merged/videos"), {}), 2);
}

TEST_F(MergeTest, ResultsThatAreThereStayUnlessTold) {
  Merge(options_);
  const auto code = [this] {
    try {
      Merge(options_);
    } catch (const mjp::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("give --overwrite"));
      return error.code();
    }
    return mjp::ExitCode::kOk;
  };
  EXPECT_EQ(code(), mjp::ExitCode::kUsage);
  EXPECT_EQ(Summary().at("overall").at("n_episodes"), 5);
  options_.overwrite = true;
  EXPECT_EQ(code(), mjp::ExitCode::kOk);
  // and what is told to replace may not be there yet
  options_.out = directory_ / "fresh";
  EXPECT_EQ(code(), mjp::ExitCode::kOk);
}

TEST_F(MergeTest, NothingIsLeftWhereAVideoCannotBeCopied) {
  WriteVideo("s0/videos/eval_episode_2");
  fs::create_directories(directory_ / "merged");
  directory_.Write("merged/videos", "a file where the folder should be");
  ExpectRefused(mjp::ExitCode::kBadInput, "cannot copy the video");
}

TEST_F(MergeTest, AMissingShardIsNamedUnlessPartialSetsAreWanted) {
  options_.folders = {directory_ / "s1"};
  ExpectRefused(mjp::ExitCode::kPartial, "shard 0/2 is missing");
  options_.folders = {directory_ / "s0"};
  ExpectRefused(mjp::ExitCode::kPartial, "shard 1/2 is missing");
  options_.partial = true;
  const MergeResult result = Merge(options_);
  EXPECT_EQ(result.figures.episodes, 3);
  EXPECT_EQ(result.expected, 5);
  EXPECT_EQ(Summary().at("partial"), true);
}

TEST_F(MergeTest, AMissingEpisodeIsNamedUnlessPartialSetsAreWanted) {
  Log("s0", {0, 2});
  ExpectRefused(mjp::ExitCode::kPartial, "has 2 episodes; 4 is the first that is missing");
  Log("s0", {2, 4});
  ExpectRefused(mjp::ExitCode::kPartial, "0 is the first that is missing");
  options_.partial = true;
  EXPECT_EQ(Merge(options_).figures.episodes, 4);
}

TEST_F(MergeTest, OddSetsAreNamed) {
  options_.folders.push_back(directory_ / "s1/.");
  ExpectRefused(mjp::ExitCode::kBadInput, "are both shard 1/2");
  options_.folders.pop_back();
  Run("s1", "1/3");
  ExpectRefused(mjp::ExitCode::kBadInput,
                "s1: is shard 1/3, but " + (directory_ / "s0") + " is shard 0/2");
  Run("s1", "1/2", R"("steps": 4, )");
  ExpectRefused(mjp::ExitCode::kBadInput, "--steps was absent, is 4");
  Run("s1", "2/2");
  ExpectRefused(mjp::ExitCode::kBadInput, "s1/run.json: shard 2/2");
}

TEST_F(MergeTest, AShardIsNoPlaceForTheResult) {
  options_.out = directory_ / "s1";
  try {
    Merge(options_);
    FAIL() << "merged";
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("is one of the shards"));
  }
}

TEST_F(MergeTest, OddEpisodesAreNamed) {
  const auto refuse = [this](const EpisodeResult& odd, const std::string& text) {
    directory_.Write("s1/episodes.jsonl", ToJsonLine(Episode(1)) + "\n" + ToJsonLine(odd) + "\n");
    ExpectRefused(mjp::ExitCode::kBadInput, "s1/episodes.jsonl: episode " + text);
  };
  EpisodeResult odd = Episode(3);
  odd.seed = 104;
  refuse(odd, "3 has seed 104, expected 103");
  refuse(Episode(4), "4 does not belong to shard 1/2");
  refuse(Episode(5), "5 is not one of the evaluation's 5");
  refuse(Episode(7), "7 is not one of the evaluation's 5");
}

}  // namespace
}  // namespace mjp::app
