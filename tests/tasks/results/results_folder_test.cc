#include "tasks/results/results_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "tasks/recording/video.h"
#include "tasks/results/shard_results.h"
#include "tests/support/temp_dir.h"
#include "tests/tasks/results/failing_append.h"
#include "tests/tasks/results/failing_lock.h"

namespace mjp::app {
namespace {

constexpr char kRunA[] = R"({"steps": 10, "seed": 100000, "episodes": 100, "shard": "0/1"})";
constexpr char kRunB[] = R"({"steps": 4, "seed": 100000, "episodes": 100, "shard": "0/1"})";

class ResultsFolderTest : public ::testing::Test {
 protected:
  static EpisodeResult Episode(int index) {
    EpisodeResult e;
    e.index = index;
    e.seed = 100000 + index;
    e.steps = 60 + index;
    e.success_step = index % 2 == 0 ? 60 : -1;
    e.measures = {{"coverage", 0.1 + index / 9.0, 1.0 / 7}};
    e.sum_reward = 12.25;
    e.max_reward = 1;
    e.decisions = 8;
    e.hash = 0x0123456789abcdefull + index;
    e.seconds = 0.5;
    return e;
  }

  mjp::ExitCode CodeOf(const std::function<void()>& action) {
    try {
      action();
    } catch (const mjp::Error& error) {
      text_ = error.what();
      return error.code();
    }
    return mjp::ExitCode::kOk;
  }

  std::string Log() const { return root_ + "/episodes.jsonl"; }

  mjp_test::TempDir directory_;
  std::string root_ = directory_.path(), text_;
};

TEST_F(ResultsFolderTest, EpisodeSurvivesItsLine) {
  EpisodeResult e = Episode(3);
  e.valid = false;
  e.reason = "physics \"diverged\"\n";
  const EpisodeResult back = EpisodeFromJson(ToJsonLine(e));
  EXPECT_EQ(ToJsonLine(back), ToJsonLine(e));
  EXPECT_EQ(back.measures.at(0).max, e.measures.at(0).max);
  EXPECT_EQ(back.hash, e.hash);
  EXPECT_EQ(back.reason, e.reason);
  EXPECT_FALSE(back.success());
}

TEST_F(ResultsFolderTest, NumbersThatNoEpisodeHasAreRefused) {
  const std::string line = ToJsonLine(Episode(2));
  EXPECT_NO_THROW(EpisodeFromJson(line));
  const std::pair<const char*, const char*> changes[] = {
      {"\"score\":1.0", "\"score\":1.0001"},
      {"\"score\":1.0", "\"score\":1e8"},
      {"\"score\":1.0", "\"score\":-0.1"},
      {"\"score\":1.0", "\"score\":\"1\""},
      {"\"sum_reward\":12.25", "\"sum_reward\":63"},
      {"\"success_step\":60", "\"success_step\":63"},
      {"\"max_coverage\":0", "\"max_coverage\":1"},
      {"\"final_coverage\":0", "\"final_coverage\":1"}};
  for (const auto& [from, to] : changes) {
    std::string odd = line;
    const size_t at = odd.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << line;
    odd.replace(at, std::string(from).size(), to);
    EXPECT_THROW(EpisodeFromJson(odd), mjp::Error) << to;
  }
}

TEST_F(ResultsFolderTest, AnyFileAloneIsAResult) {
  EXPECT_FALSE(HoldsResults(root_));
  for (const char* name : {"run.json", "episodes.jsonl", "eval_info.json"}) {
    const std::string file = directory_.Write(name, "");
    EXPECT_TRUE(HoldsResults(root_)) << name;
    EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, kRunA, ExistingResults::kRefuse); }),
              mjp::ExitCode::kUsage);
    EXPECT_TRUE(std::filesystem::exists(file)) << name;
    std::filesystem::remove(file);
  }
}

TEST_F(ResultsFolderTest, OneWhoKnowsThatAllIsThereWritesNothing) {
  const std::vector<int> indices = {0, 1};
  {
    ResultsFolder folder(root_, kRunA, ExistingResults::kRefuse);
    folder.Append(Episode(0));
    EXPECT_FALSE(CompleteResults(root_, kRunA, indices));
    folder.Append(Episode(1));
    EXPECT_FALSE(CompleteResults(root_, kRunA, indices)) << "the summary is missing";
    folder.Finish(R"({"overall": {"n_episodes": 2, "video_paths": []}})");
  }
  ASSERT_TRUE(CompleteResults(root_, kRunA, indices));
  EXPECT_EQ(CompleteResults(root_, kRunA, indices)->size(), 2u);
  std::ofstream(Log(), std::ios::app) << ToJsonLine(Episode(2)).substr(0, 40);
  EXPECT_TRUE(CompleteResults(root_, kRunA, indices)) << "a torn line is of no episode";
  EXPECT_FALSE(CompleteResults(root_, kRunA, {0, 1, 2}));
  EXPECT_THROW(CompleteResults(root_, kRunB, indices), mjp::Error);
  ResultsFolder(root_, kRunA, ExistingResults::kResume)
      .Finish(R"({"overall": {"n_episodes": 2, "video_paths": ["gone.mp4"]}})");
  EXPECT_FALSE(CompleteResults(root_, kRunA, indices)) << "a video is missing";
}

TEST_F(ResultsFolderTest, TornVideosGoAndOthersFilesStay) {
  ResultsFolder(root_, kRunA, ExistingResults::kRefuse).Append(Episode(0));
  const std::string videos = root_ + "/videos/";
  std::filesystem::create_directory(videos);
  for (const char* name : {"eval_episode_0.mp4", ".eval_episode_0.mp4.17.part", "mine.mp4"}) {
    std::ofstream(videos + name) << "a stub";
  }
  const ResultsFolder folder(root_, kRunA, ExistingResults::kResume);
  EXPECT_FALSE(std::filesystem::exists(videos + "eval_episode_0.mp4"));
  EXPECT_FALSE(std::filesystem::exists(videos + ".eval_episode_0.mp4.17.part"));
  EXPECT_TRUE(std::filesystem::exists(videos + "mine.mp4"));
  EXPECT_TRUE(VideosIn(root_, folder.finished()).empty());
}

TEST_F(ResultsFolderTest, WholeVideosStayOnResumeAndGoWithTheirResults) {
  std::filesystem::create_directory(root_ + "/videos");
  const auto write_video = [this] {
    const auto writer = VideoWriter::Open(root_ + "/videos/eval_episode_0", 64, 48, 10);
    writer->Add(Picture(64, 48, 100));
    writer->Close();
    return writer->file();
  };
  ResultsFolder(root_, kRunA, ExistingResults::kRefuse).Append(Episode(0));
  const std::string video = write_video();
  { ResultsFolder folder(root_, kRunA, ExistingResults::kResume); }
  EXPECT_TRUE(std::filesystem::exists(video));
  { ResultsFolder folder(root_, kRunA, ExistingResults::kOverwrite); }
  EXPECT_FALSE(std::filesystem::exists(video));
  write_video();
  ResultsFolder(root_, kRunA, ExistingResults::kResume).Discard();
  EXPECT_FALSE(std::filesystem::exists(video));
  EXPECT_FALSE(HoldsResults(root_));
}

// as LeRobot's evaluation writes them
TEST_F(ResultsFolderTest, ResultsAndVideosOfAnotherProgramStay) {
  const std::string summary = directory_.Write("eval_info.json", "{}");
  std::filesystem::create_directory(root_ + "/videos");
  const std::string video = directory_.Write("videos/eval_episode_0.mp4", "whole or not");
  for (const bool summarised : {true, false}) {
    if (!summarised) std::filesystem::remove(summary);
    for (const ExistingResults existing : {ExistingResults::kRefuse, ExistingResults::kResume}) {
      EXPECT_NE(CodeOf([&] { ResultsFolder(root_, kRunA, existing); }), mjp::ExitCode::kOk);
      EXPECT_EQ(std::filesystem::exists(summary), summarised);
      EXPECT_TRUE(std::filesystem::exists(video));
    }
    EXPECT_NE(text_.find("holds results without a run.json"), std::string::npos) << text_;
  }
  { ResultsFolder folder(root_, kRunA, ExistingResults::kOverwrite); }
  EXPECT_FALSE(std::filesystem::exists(video));
}

TEST_F(ResultsFolderTest, RefusesWhatIsThereUnlessTold) {
  { ResultsFolder folder(root_, kRunA, ExistingResults::kRefuse); }
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, kRunA, ExistingResults::kRefuse); }),
            mjp::ExitCode::kUsage);
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, kRunB, ExistingResults::kResume); }),
            mjp::ExitCode::kBadInput);
  EXPECT_NE(text_.find("--steps was 10, is 4;"), std::string::npos) << text_;
  EXPECT_EQ(text_.find('{'), std::string::npos) << text_;
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, kRunB, ExistingResults::kOverwrite); }),
            mjp::ExitCode::kOk);
}

TEST_F(ResultsFolderTest, GoesOnWithAnEarlierBuildsButNotWithAnotherTask) {
  { ResultsFolder folder(root_, kRunA, ExistingResults::kRefuse); }
  const std::string pusht =
      R"({"steps": 10, "task": "pusht", "seed": 100000, "episodes": 100, "shard": "0/1"})";
  const std::string reach =
      R"({"steps": 10, "task": "reach", "seed": 100000, "episodes": 100, "shard": "0/1"})";
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, pusht, ExistingResults::kResume); }),
            mjp::ExitCode::kOk);
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, reach, ExistingResults::kResume); }),
            mjp::ExitCode::kBadInput);
  EXPECT_NE(text_.find("--task was pusht, is reach"), std::string::npos) << text_;
}

TEST_F(ResultsFolderTest, ResumeDropsATornLineAndFinishSorts) {
  {
    ResultsFolder folder(root_, kRunA, ExistingResults::kRefuse);
    folder.Append(Episode(4));
    folder.Append(Episode(1));
  }
  std::ofstream(Log(), std::ios::app) << ToJsonLine(Episode(2)).substr(0, 40);
  ResultsFolder folder(root_, kRunA, ExistingResults::kResume);
  ASSERT_EQ(folder.finished().size(), 2u);
  folder.Append(Episode(2));
  folder.Finish("{}\n");
  EXPECT_EQ(ReadFile(Log(), 1 << 20), ToJsonLine(Episode(1)) + "\n" + ToJsonLine(Episode(2)) +
                                          "\n" + ToJsonLine(Episode(4)) + "\n");
  EXPECT_EQ(ReadFile(root_ + "/eval_info.json", 100), "{}\n");
}

TEST_F(ResultsFolderTest, WithoutALogNothingIsDoneYet) {
  EXPECT_FALSE(CompleteResults(root_, kRunA, {0})) << "no run";
  ResultsFolder(root_, kRunA, ExistingResults::kRefuse)
      .Finish(R"({"overall": {"n_episodes": 0, "video_paths": []}})");
  EXPECT_TRUE(CompleteResults(root_, kRunA, {}));
  std::filesystem::remove(Log());
  EXPECT_FALSE(CompleteResults(root_, kRunA, {})) << "no log";
  const ResultsFolder folder(root_, kRunA, ExistingResults::kResume);
  EXPECT_TRUE(folder.finished().empty());
  EXPECT_TRUE(std::filesystem::exists(Log()));
}

TEST_F(ResultsFolderTest, ATornLogIsRefusedWhereNobodyGoesOn) {
  { ResultsFolder(root_, kRunA, ExistingResults::kRefuse).Append(Episode(0)); }
  std::ofstream(Log(), std::ios::app) << "{";
  EXPECT_EQ(ReadEpisodes(Log(), true).size(), 1u);
  EXPECT_EQ(CodeOf([&] { ReadEpisodes(Log(), false); }), mjp::ExitCode::kBadInput);
  EXPECT_NE(text_.find("the last line is torn"), std::string::npos) << text_;
}

TEST_F(ResultsFolderTest, NothingIsAppendedBehindATornLine) {
  {
    ResultsFolder folder(root_, kRunA, ExistingResults::kRefuse);
    folder.Append(Episode(0));
    mjp_test::appends_left = 0;
    EXPECT_EQ(CodeOf([&] { folder.Append(Episode(1)); }), mjp::ExitCode::kBadInput);
    EXPECT_NE(text_.find("No space left"), std::string::npos) << text_;
    EXPECT_EQ(CodeOf([&] { folder.Append(Episode(2)); }), mjp::ExitCode::kBadInput);
    EXPECT_NE(text_.find("--resume"), std::string::npos) << text_;
  }
  ResultsFolder folder(root_, kRunA, ExistingResults::kResume);
  EXPECT_EQ(folder.finished().size(), 1u);
  for (const int index : {1, 2}) folder.Append(Episode(index));
  EXPECT_EQ(ReadEpisodes(Log(), false).size(), 3u);
}

TEST_F(ResultsFolderTest, AFolderThatCannotBeMadeIsNamed) {
  const std::string file = directory_.Write("file", "");
  EXPECT_EQ(CodeOf([&] { ResultsFolder(file + "/inside", kRunA, ExistingResults::kRefuse); }),
            mjp::ExitCode::kBadInput);
  EXPECT_NE(text_.find("cannot create the folder"), std::string::npos) << text_;
}

TEST_F(ResultsFolderTest, AFolderWithAVideosNameStays) {
  std::filesystem::create_directories(root_ + "/videos/eval_episode_7");
  { ResultsFolder folder(root_, kRunA, ExistingResults::kOverwrite); }
  EXPECT_TRUE(std::filesystem::exists(root_ + "/videos/eval_episode_7"));
}

TEST_F(ResultsFolderTest, SecondWriterIsRefused) {
  ResultsFolder folder(root_, kRunA, ExistingResults::kRefuse);
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, kRunA, ExistingResults::kResume); }),
            mjp::ExitCode::kUsage);
  EXPECT_NE(text_.find("another evaluation is writing here"), std::string::npos) << text_;
}

TEST_F(ResultsFolderTest, AFileSystemWithoutLocksIsNoSecondWriter) {
  mjp_test::locks_fail = true;
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, kRunA, ExistingResults::kRefuse); }),
            mjp::ExitCode::kBadInput);
  mjp_test::locks_fail = false;
  EXPECT_EQ(text_.find("is writing here"), std::string::npos) << text_;
  for (const char* said : {".lock: cannot lock: ", "a file system that has locks"})
    EXPECT_NE(text_.find(said), std::string::npos) << text_;
  EXPECT_FALSE(HoldsResults(root_));
}

TEST_F(ResultsFolderTest, DamageInTheMiddleIsNamedWithItsLine) {
  { ResultsFolder(root_, kRunA, ExistingResults::kRefuse).Append(Episode(0)); }
  std::ofstream(Log(), std::ios::app) << "{\"episode\":1}\n" << ToJsonLine(Episode(2)) << "\n";
  EXPECT_EQ(CodeOf([&] { ReadEpisodes(Log(), true); }), mjp::ExitCode::kBadInput);
  EXPECT_NE(text_.find("episodes.jsonl:2:"), std::string::npos) << text_;
}

// by hand, or where a folder was put together from two
TEST_F(ResultsFolderTest, EpisodesOfAnotherEvaluationAreRefused) {
  EpisodeResult seed = Episode(1), beyond = Episode(100);
  seed.seed = 7;
  beyond.measures = seed.measures;
  const std::pair<EpisodeResult, const char*> odd[] = {
      {seed, "episode 1 has seed 7, expected 100001"},
      {beyond, "episode 100 is not one of the evaluation's 100"}};
  for (const auto& [episode, said] : odd) {
    { ResultsFolder(root_, kRunA, ExistingResults::kOverwrite).Append(Episode(0)); }
    std::ofstream(Log(), std::ios::app) << ToJsonLine(episode) << "\n";
    directory_.Write("eval_info.json", R"({"overall": {"n_episodes": 2, "video_paths": []}})");
    const std::function<void()> readers[] = {
        [&] { ResultsFolder(root_, kRunA, ExistingResults::kResume); },
        [&] { CompleteResults(root_, kRunA, {0}); }, [&] { ReadEpisodesIn(root_, false); }};
    for (const auto& read : readers) {
      EXPECT_EQ(CodeOf(read), mjp::ExitCode::kBadInput);
      EXPECT_NE(text_.find(said), std::string::npos) << text_;
    }
  }
}

TEST_F(ResultsFolderTest, EpisodeTwiceIsRefused) {
  std::ofstream(Log()) << ToJsonLine(Episode(0)) << "\n" << ToJsonLine(Episode(0)) << "\n";
  EXPECT_EQ(CodeOf([&] { ReadEpisodes(Log(), true); }), mjp::ExitCode::kBadInput);
  EXPECT_NE(text_.find("episode 0 stands twice"), std::string::npos) << text_;
}

TEST_F(ResultsFolderTest, UnwritablePlaceIsNamed) {
  EXPECT_EQ(CodeOf([&] { WriteFileAtomically(root_ + "/absent/file", "x"); }),
            mjp::ExitCode::kBadInput);
  EXPECT_NE(text_.find("cannot create"), std::string::npos) << text_;
}

}  // namespace
}  // namespace mjp::app
