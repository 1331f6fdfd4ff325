// Evaluations under faults of the world around them: killed at any moment, no space, no rights,
// two writers, a dead video encoder. What was finished is kept and the rest can go on.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tasks/results/results_folder.h"
#include "tests/support/program.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;
using mjp_test::Outcome;
using mjp_test::RunMjpolicy;
using ::testing::HasSubstr;

class FaultsTest : public mjp_test::ProgramTest {
 protected:
  // Waits until `out` has at least `bytes` of episodes.
  void WaitForEpisodes(const std::string& out, uintmax_t bytes) const {
    for (int i = 0; i < 1200; ++i) {
      std::error_code none;
      const uintmax_t size = fs::file_size(Path(out) + "/episodes.jsonl", none);
      if (!none && size >= bytes) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    FAIL() << "no episodes came";
  }
  size_t Kept(const std::string& out) const {
    return ReadEpisodes(Path(out) + "/episodes.jsonl", true).size();
  }
};

// MJPOLICY_TEST_KILLS=200 for the full campaign; the moments are random but repeat.
TEST_F(FaultsTest, KilledAtAnyMomentAndResumedGivesTheSameBytes) {
  const std::string evaluation = "--episodes 60 --batch 4 ";
  ASSERT_EQ(RunMjpolicy(Evaluate("whole") + evaluation).code, 0);
  const std::string whole = Results("whole");
  const char* wish = std::getenv("MJPOLICY_TEST_KILLS");
  const int kills = wish ? std::atoi(wish) : 20;
  std::mt19937 random(7);
  int killed = 0, with_episodes = 0;
  for (int i = 0; killed < kills && i < 10 * kills; ++i) {
    const pid_t child = mjp_test::StartMjpolicy(Evaluate("a") + evaluation + "--resume");
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 250000));
    ::kill(child, SIGKILL);
    if (mjp_test::Wait(child) == 128 + SIGKILL) {
      ++killed;
      if (fs::exists(Path("a/episodes.jsonl"))) with_episodes += Kept("a") > 0;
      continue;
    }
    ASSERT_EQ(Results("a"), whole);
    fs::remove_all(Path("a"));
  }
  ASSERT_EQ(RunMjpolicy(Evaluate("a") + evaluation + "--resume").code, 0);
  EXPECT_EQ(Results("a"), whole);
  EXPECT_EQ(killed, kills);
  RecordProperty("killed_with_episodes", with_episodes);
}

TEST_F(FaultsTest, TerminatedEvaluationEndsWith143AndGoesOn) {
  const pid_t child = mjp_test::StartMjpolicy(Evaluate("a") + "--episodes 400 --batch 4");
  WaitForEpisodes("a", 500);
  ::kill(child, SIGTERM);
  EXPECT_EQ(mjp_test::Wait(child), 143);
  EXPECT_GT(Kept("a"), 0u);
  EXPECT_FALSE(fs::exists(Path("a/eval_info.json")));
  EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 400 --batch 4 --resume").code, 0);
}

TEST_F(FaultsTest, WorkThatIsStoppedSaysWhatIsKept) {
  struct Case {
    std::string command, said;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"certify " + checkpoint_ + " --episodes 1000000 --timed 10000000 --backend cpu --out " +
                Path("c.json"),
            "stopped; no certificate is written"},
           {"bench kernels --seconds 60 --json " + Path("b.json"),
            "stopped; the rows above are all, --json gets none"},
           {"profile --backend cpu --decisions 100000 --checkpoint " + checkpoint_ + " --trace " +
                Path("t.json"),
            "of 100000 decisions were recorded"}}) {
    const Outcome stopped = RunMjpolicy(c.command, "timeout --preserve-status -s INT 5");
    EXPECT_EQ(stopped.code, 130) << stopped.text;
    EXPECT_THAT(stopped.text, HasSubstr(c.said));
  }
  EXPECT_FALSE(fs::exists(Path("c.json")) || fs::exists(Path("b.json")));
  EXPECT_TRUE(fs::exists(Path("t.json")));
}

TEST_F(FaultsTest, FileThatMustNotGrowKeepsWhatIsThere) {
  // 4 blocks of 512 bytes: run.json fits, the episodes do not all
  const Outcome full = RunMjpolicy(Evaluate("a") + "--episodes 40", "ulimit -f 4;");
  EXPECT_EQ(full.code, 2) << full.text;
  EXPECT_THAT(full.text, HasSubstr("episodes.jsonl: cannot write: File too large"));
  EXPECT_GT(Kept("a"), 0u);
  ASSERT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 40 --resume").code, 0);
  ASSERT_EQ(RunMjpolicy(Evaluate("whole") + "--episodes 40").code, 0);
  EXPECT_EQ(Results("a"), Results("whole"));
}

TEST_F(FaultsTest, FullDiskKeepsWhatIsThere) {
  const std::string disk = Path("disk");
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=16k") != 0) {
    GTEST_SKIP() << "a small disk needs the right to mount";
  }
  const Outcome full = RunMjpolicy(Evaluate("disk/a") + "--episodes 100");
  const bool kept = fs::exists(disk + "/a/run.json");
  std::string error;
  try {
    ReadEpisodes(disk + "/a/episodes.jsonl", true);
  } catch (const std::exception& e) {
    error = e.what();
  }
  ::umount(disk.c_str());
  EXPECT_EQ(full.code, 2) << full.text;
  EXPECT_THAT(full.text, HasSubstr("No space left on device"));
  EXPECT_TRUE(kept);
  EXPECT_EQ(error, "");
}

TEST_F(FaultsTest, FolderThatCannotBeWrittenIsNamed) {
  // /proc refuses new folders even to root
  const Outcome refused = RunMjpolicy("evaluate --checkpoint " + checkpoint_ +
                                      " --backend cpu --episodes 1 --out /proc/results");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.text, HasSubstr("/proc/results: cannot create the folder"));
  std::ofstream(Path("file")) << "x";
  EXPECT_EQ(RunMjpolicy(Evaluate("file") + "--episodes 1").code, 2);
  if (::geteuid() == 0) return;
  fs::create_directory(Path("locked"));
  fs::permissions(Path("locked"), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(RunMjpolicy(Evaluate("locked") + "--episodes 1").code, 2);
}

TEST_F(FaultsTest, SecondWriterIsRefusedAndHarmless) {
  const pid_t first = mjp_test::StartMjpolicy(Evaluate("a") + "--episodes 400 --batch 4");
  WaitForEpisodes("a", 500);
  for (const char* how : {"", "--resume", "--overwrite"}) {
    const Outcome second = RunMjpolicy(Evaluate("a") + "--episodes 400 --batch 4 " + how);
    EXPECT_EQ(second.code, 1) << how;
    EXPECT_THAT(second.text, HasSubstr("another evaluation is writing here")) << how;
  }
  EXPECT_EQ(mjp_test::Wait(first), 0);
  EXPECT_EQ(Kept("a"), 400u);
}

TEST_F(FaultsTest, ARefusedOverwriteLeavesTheOldResults) {
  ASSERT_EQ(RunMjpolicy(Evaluate("keep") + "--episodes 2 --videos 1").code, 0);
  const std::string whole = Results("keep");
  for (const char* refused : {"--through plugin --picture-noise 3", "--through plugin --push 3",
                              "--through plugin --replan-beyond 5 --action-steps 8",
                              "--replan-beyond 5 --action-steps 8"}) {
    const Outcome outcome = RunMjpolicy(Evaluate("keep") + "--episodes 2 --overwrite " + refused);
    EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << refused << ": " << outcome.text;
    ASSERT_EQ(Results("keep"), whole) << refused;
    EXPECT_FALSE(fs::is_empty(Path("keep/videos"))) << refused;
  }
}

TEST_F(FaultsTest, DeadVideoEncoderIsAnErrorAndTheEvaluationGoesOn) {
  fs::create_directory(Path("bin"));
  const std::string ffmpeg = Path("bin/ffmpeg");
  for (const char* body :
       {"exit 1", "head -c 100000 >/dev/null; exit 0", "kill -9 $$", "cat >/dev/null; exit 1"}) {
    std::ofstream(ffmpeg) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(ffmpeg, fs::perms::owner_all);
    const Outcome dead = RunMjpolicy(Evaluate("a") + "--episodes 3 --videos 1 --overwrite",
                                     "PATH=" + Path("bin") + ":$PATH");
    EXPECT_EQ(dead.code, 2) << body << dead.text;
    EXPECT_THAT(dead.text, HasSubstr("eval_episode_0.mp4: ffmpeg ")) << body;
  }
  EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 3 --videos 1 --resume").code, 0);
}

TEST_F(FaultsTest, VideosOfAResumedEvaluationAreListed) {
  ASSERT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 3 --videos 3").code, 0);
  const std::string whole = Results("a");
  EXPECT_THAT(whole, HasSubstr("eval_episode_0."));
  // as if killed before the last episode was recorded
  const std::string log = Path("a/episodes.jsonl");
  fs::resize_file(log, fs::file_size(log) - 5);
  fs::remove(Path("a/eval_info.json"));
  ASSERT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 3 --videos 3 --resume").code, 0);
  EXPECT_EQ(Results("a"), whole);
}

TEST_F(FaultsTest, VideosThatAResumeDoesNotMakeAreSaid) {
  ASSERT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 3 --videos 1").code, 0);
  const std::string more = Evaluate("a") + "--episodes 3 --videos 3 --resume";
  EXPECT_THAT(RunMjpolicy(more).text, HasSubstr("2 of 3 videos are missing"));
  // with an episode to do, that one's video is made
  const std::string log = Path("a/episodes.jsonl");
  fs::resize_file(log, fs::file_size(log) - 5);
  fs::remove(Path("a/eval_info.json"));
  EXPECT_THAT(RunMjpolicy(more).text, HasSubstr("1 of 3 videos are missing"));
  EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 3 --videos 3 --overwrite").text.find("missing"),
            std::string::npos);
}

TEST_F(FaultsTest, LostOutputIsAnErrorAndTheResultsAreKept) {
  ASSERT_EQ(RunMjpolicy(Evaluate("whole") + "--episodes 5").code, 0);
  const Outcome full = RunMjpolicy(Evaluate("a") + "--episodes 5 >/dev/full )", "(");
  EXPECT_EQ(full.code, 2);
  EXPECT_THAT(full.text, HasSubstr("cannot write the standard output: No space left on device"));
  EXPECT_EQ(Results("a"), Results("whole"));
  // a reader who has had enough is none
  EXPECT_EQ(RunMjpolicy("inspect " + checkpoint_ + " || echo failed ) | head -n 1", "(")
                .text.find("fail"),
            std::string::npos);
}

TEST_F(FaultsTest, AnInstructionSetThatIsNoneIsAnError) {
  for (const char* name : {"avx51", "AVX2", "none"}) {
    const Outcome outcome = RunMjpolicy("--version", std::string("MJPOLICY_ISA=") + name);
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    EXPECT_NE(outcome.text.find(std::string("MJPOLICY_ISA is '") + name), std::string::npos)
        << outcome.text;
  }
  EXPECT_EQ(RunMjpolicy("--version", "MJPOLICY_ISA=").code, 0);
}

TEST_F(FaultsTest, NothingIsPrintedIntoFilesWhereStreamsAreClosed) {
  ASSERT_EQ(RunMjpolicy(Evaluate("whole") + "--episodes 5").code, 0);
  for (const std::string closed : {"2>&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
    EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 5 --overwrite " + closed + " )", "(").code,
              0);
    EXPECT_EQ(Results("a"), Results("whole")) << closed;
    EXPECT_EQ(fs::file_size(Path("a/.lock")), 0u) << closed;
  }
}

}  // namespace
}  // namespace mjp::app
