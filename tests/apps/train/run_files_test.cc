// What a run keeps on the disk is whole or not there: a state with one bit changed is refused, what
// is not finite is not saved, a log has no torn lines.

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "apps/train/log_file.h"
#include "apps/train/optimisation/optimizer.h"
#include "apps/train/run_folder.h"
#include "apps/train/run_state.h"
#include "base/error.h"
#include "base/folders.h"
#include "tests/apps/train/earlier_state.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kLimit = 1 << 20;

std::string ErrorOf(const std::function<void()>& action, ExitCode code = ExitCode::kBadInput) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

// A network of a matrix and a vector, as a run has it.
struct Network {
  explicit Network(const std::vector<int64_t>& matrix = {2, 3})
      : parameters({{"a.weight", {matrix, {1, 2, 3, 4, 5, 6}}}, {"a.bias", {{2}, {7, 8}}}},
                   at::kCPU, at::kFloat),
        optimizer(parameters, {}, ranks) {}

  Ranks ranks{1};
  Parameters parameters;
  Optimizer optimizer;
};

class RunStateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SeedGenerator(at::kCPU, 3);
    SaveRunState(path_, Network().optimizer, {5, 1.5, {2, 3}}, at::kCPU, "v");
  }
  static RunProgress Load(const std::string& path, Network& network) {
    return LoadRunState(path, network.optimizer, at::kCPU, "v");
  }

  const mjp_test::TempDir dir_;
  const std::string path_ = dir_ / "state.safetensors";
};

TEST_F(RunStateTest, IsWhatWasSaved) {
  Network network;
  network.parameters.master().zero_();
  const RunProgress progress = Load(path_, network);
  EXPECT_EQ(progress.step, 5);
  EXPECT_EQ(progress.seconds, 1.5);
  EXPECT_EQ(progress.best.successes, 2);
  EXPECT_EQ(progress.best.n, 3);
  EXPECT_EQ(network.parameters.master()[5].item<float>(), 6);
}

TEST_F(RunStateTest, OfAnEarlierBuildHasABestOfUnknownEpisodes) {
  WriteAsEarlierBuild(path_, dir_ / "earlier.safetensors", 2);
  Network network;
  const RunProgress progress = Load(dir_ / "earlier.safetensors", network);
  EXPECT_EQ(progress.step, 5);
  EXPECT_EQ(progress.best.successes, 2);
  EXPECT_EQ(progress.best.n, 0);
}

TEST_F(RunStateTest, KnowsWhetherBeginningsWereKnown) {
  Network network;
  const auto load = [&](const std::string& path, std::optional<bool> prefix) {
    LoadRunState(path, network.optimizer, at::kCPU, "v", prefix);
  };
  load(path_, false);
  EXPECT_THAT(ErrorOf([&] { load(path_, true); }),
              HasSubstr("the run began without --prefix-share; go on without it"));
  SaveRunState(path_, network.optimizer, {}, at::kCPU, "v", true);
  load(path_, true);
  EXPECT_THAT(ErrorOf([&] { load(path_, false); }),
              HasSubstr("the run began with --prefix-share; go on with it"));
}

TEST_F(RunStateTest, OfAnEarlierBuildIsOfWhatItsCheckpointSays) {
  const std::string earlier = dir_ / "earlier.safetensors";
  WriteAsEarlierBuild(path_, earlier, 2);
  Network network;
  const auto load = [&](std::optional<bool> prefix) {
    ::testing::internal::CaptureStderr();
    const std::string error =
        ErrorOf([&] { LoadRunState(earlier, network.optimizer, at::kCPU, "v", prefix); });
    return error + ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(load(true), HasSubstr("--prefix-share was given; the run goes on with it"));
  EXPECT_THAT(load(false), HasSubstr("--prefix-share was given; the run goes on without it"));
  fs::create_directory(dir_ / "checkpoint");
  dir_.Write("checkpoint/config.json", "{\"trained_prefix\": true}");
  EXPECT_EQ(load(true), "");
  EXPECT_THAT(load(false), HasSubstr("the run began with --prefix-share"));
  EXPECT_EQ(load({}), "");
  dir_.Write("checkpoint/config.json", "{}");
  EXPECT_THAT(load(true), HasSubstr("the run began without --prefix-share"));
  EXPECT_EQ(load(false), "");
}

TEST_F(RunStateTest, EachFlippedBitIsSeenAndTouchesNothing) {
  const std::string whole = ReadFile(path_, kLimit);
  for (size_t at = 0; at < whole.size(); at += at < 1600 ? 1 : 97) {
    std::string bytes = whole;
    bytes[at] ^= 4;
    dir_.Write("bad.safetensors", bytes);
    Network network;
    EXPECT_NE(ErrorOf([&] { Load(dir_ / "bad.safetensors", network); }), "") << at;
    EXPECT_EQ(network.parameters.master()[0].item<float>(), 1) << at;
  }
}

TEST_F(RunStateTest, IsOfOneNetwork) {
  Network turned({3, 2});  // of as many numbers
  EXPECT_THAT(ErrorOf([&] { Load(path_, turned); }), HasSubstr("is of another network"));
}

TEST_F(RunStateTest, WhatIsNotFiniteIsNotSaved) {
  const std::string before = ReadFile(path_, kLimit);
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const size_t vector : {0, 1, 2, 3}) {
      Network network;
      network.optimizer.State()[vector][1] = value;
      EXPECT_THAT(ErrorOf(
                      [&] {
                        SaveRunState(path_, network.optimizer, {6, 2, {2, 3}}, at::kCPU, "v");
                      },
                      ExitCode::kRetryable),
                  AllOf(HasSubstr("not finite at step 6"), HasSubstr("--learning-rate")));
      EXPECT_EQ(ReadFile(path_, kLimit), before);
    }
  }
}

TEST_F(RunStateTest, ALinkToNothingIsNoNewRun) {
  EXPECT_FALSE(HasRunState(dir_ / "absent"));
  fs::create_symlink(dir_ / "absent", dir_ / "link");
  ASSERT_TRUE(HasRunState(dir_ / "link"));
  Network network;
  EXPECT_THAT(ErrorOf([&] { Load(dir_ / "link", network); }), HasSubstr("cannot open"));
}

TEST(LogFileTest, GoesOnAtTheStepWithoutWhatIsTorn) {
  const mjp_test::TempDir dir;
  const std::string json = dir / "log.jsonl", csv = dir / "loss.csv", header = "step,seconds,loss";
  dir.Write("log.jsonl",
            "{\"step\":1}\n{\"st\n[2]\n{\"step\":2}\n{\"step\":3}\n{\"step\":2,\"loss\":1}");
  dir.Write("loss.csv", header + "\n1,0.5,0.25\n2,1\n\nx,y,z\n2,1,0.125\n3,2,1\n2,1,0.1");
  LogFile(json, 2).Add("{\"step\":3,\"new\":1}");
  LogFile(csv, 2, header).Add("3,2,0.5");
  EXPECT_EQ(ReadFile(json, kLimit), "{\"step\":1}\n{\"step\":2}\n{\"step\":3,\"new\":1}\n");
  EXPECT_EQ(ReadFile(csv, kLimit), header + "\n1,0.5,0.25\n2,1,0.125\n3,2,0.5\n");
  EXPECT_THAT(ErrorOf([] { LogFile("/dev/full/log.jsonl", 0); }), HasSubstr("/dev/full"));
}

TEST(RunFolderTest, LosesWhatKilledProcessesLeft) {
  const mjp_test::TempDir dir;
  const std::string out = dir / "run";
  fs::create_directories(out + "/checkpoint/.unfinished17");
  fs::create_directories(out + "/checkpoint/.unfinished");
  fs::create_directories(out + "/notes.tmp17");
  for (const char* name :
       {"run/state.safetensors", "run/state.safetensors.tmp17", "run/loss.csv.tmp9", "run/mine.tmp",
        "run/mine.tmp1b", "run/checkpoint/config.json.tmp3",
        "run/checkpoint/.unfinished17/config.json"}) {
    dir.Write(name, "torn");
  }
  const FileDescriptor lock = OpenRunFolder(out);
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(out))
    left.push_back(fs::relative(entry.path(), out).string());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre(".lock", "checkpoint", "checkpoint/.unfinished",
                                                    "mine.tmp", "mine.tmp1b", "notes.tmp17",
                                                    "state.safetensors"));
}

TEST(RunFolderTest, LosesTheRoundsOfARunWhoseStateIsGone) {
  const mjp_test::TempDir dir;
  const std::string out = dir / "run";
  const std::vector<std::string> files = {"rounds/streams.jsonl", "rounds/rows-00000.npy",
                                          "late/streams.jsonl", "students/1/config.json"};
  for (const std::string& file : files) {
    fs::create_directories((fs::path(out) / file).parent_path());
    dir.Write("run/" + file, "");
  }
  dir.Write("run/state.safetensors", "");
  OpenRunFolder(out);
  for (const std::string& file : files) EXPECT_TRUE(fs::exists(fs::path(out) / file)) << file;
  fs::remove(out + "/state.safetensors");
  OpenRunFolder(out);
  for (const char* name : {"rounds", "late", "students"}) {
    EXPECT_FALSE(fs::exists(fs::path(out) / name)) << name;
    fs::create_directories(fs::path(out) / name);  // of somebody else
    dir.Write(std::string("run/") + name + "/mine", "");
  }
  OpenRunFolder(out);
  for (const char* name : {"rounds", "late", "students"})
    EXPECT_TRUE(fs::exists(fs::path(out) / name / "mine")) << name;
}

TEST(RunFolderTest, KnowsWhatARunWasBegunWith) {
  const mjp_test::TempDir dir;
  CheckBegun(dir.path(), {{"teacher", "a"}});
  CheckBegun(dir.path(), {{"teacher", "b"}});  // nothing was learnt yet
  dir.Write("state.safetensors", "");
  CheckBegun(dir.path(), {{"teacher", "b"}, {"crop", 3}}, {"crop"});
  EXPECT_THAT(ErrorOf([&] {
                CheckBegun(dir.path(), {{"teacher", "a"}});
              }),
              AllOf(HasSubstr("was begun with other data"), HasSubstr("another --out")));
  fs::remove(dir / "data.json");
  EXPECT_THAT(ErrorOf([&] {
                CheckBegun(dir.path(), {{"teacher", "b"}});
              }),
              HasSubstr("data.json: is not there"));
}

}  // namespace
}  // namespace mjp::app
