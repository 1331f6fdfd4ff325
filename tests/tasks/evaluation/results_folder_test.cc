#include "tasks/evaluation/results_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

class ResultsFolderTest : public ::testing::Test {
 protected:
  static EpisodeResult Episode(int index) {
    EpisodeResult e;
    e.index = index;
    e.seed = 100000 + index;
    e.steps = 60 + index;
    e.success_step = index % 2 == 0 ? 60 : -1;
    e.max_coverage = 0.1 + index / 3.0;
    e.final_coverage = 1.0 / 7;
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
  EXPECT_EQ(back.max_coverage, e.max_coverage);
  EXPECT_EQ(back.hash, e.hash);
  EXPECT_EQ(back.reason, e.reason);
  EXPECT_FALSE(back.success());
}

TEST_F(ResultsFolderTest, RefusesWhatIsThereUnlessTold) {
  { ResultsFolder folder(root_, "run a\n", ExistingResults::kRefuse); }
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, "run a\n", ExistingResults::kRefuse); }),
            mjp::ExitCode::kUsage);
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, "run b\n", ExistingResults::kResume); }),
            mjp::ExitCode::kBadInput);
  EXPECT_NE(text_.find("there 'run a', here 'run b'"), std::string::npos) << text_;
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, "run b\n", ExistingResults::kOverwrite); }),
            mjp::ExitCode::kOk);
}

TEST_F(ResultsFolderTest, ResumeDropsATornLineAndFinishSorts) {
  {
    ResultsFolder folder(root_, "run\n", ExistingResults::kRefuse);
    folder.Append(Episode(4));
    folder.Append(Episode(1));
  }
  std::ofstream(Log(), std::ios::app) << ToJsonLine(Episode(2)).substr(0, 40);
  ResultsFolder folder(root_, "run\n", ExistingResults::kResume);
  ASSERT_EQ(folder.finished().size(), 2u);
  folder.Append(Episode(2));
  folder.Finish("{}\n");
  EXPECT_EQ(ReadFile(Log(), 1 << 20), ToJsonLine(Episode(1)) + "\n" + ToJsonLine(Episode(2)) +
                                          "\n" + ToJsonLine(Episode(4)) + "\n");
  EXPECT_EQ(ReadFile(root_ + "/eval_info.json", 100), "{}\n");
}

TEST_F(ResultsFolderTest, SecondWriterIsRefused) {
  ResultsFolder folder(root_, "run\n", ExistingResults::kRefuse);
  EXPECT_EQ(CodeOf([&] { ResultsFolder(root_, "run\n", ExistingResults::kResume); }),
            mjp::ExitCode::kUsage);
  EXPECT_NE(text_.find("another evaluation is writing here"), std::string::npos) << text_;
}

TEST_F(ResultsFolderTest, DamageInTheMiddleIsNamedWithItsLine) {
  { ResultsFolder(root_, "run\n", ExistingResults::kRefuse).Append(Episode(0)); }
  std::ofstream(Log(), std::ios::app) << "{\"episode\":1}\n" << ToJsonLine(Episode(2)) << "\n";
  EXPECT_EQ(CodeOf([&] { ReadEpisodes(Log(), true); }), mjp::ExitCode::kBadInput);
  EXPECT_NE(text_.find("episodes.jsonl:2:"), std::string::npos) << text_;
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
