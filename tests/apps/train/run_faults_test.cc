// The folders of both trainers' runs, damaged, on full disks, stopped and killed: each end is a
// defined one, nothing is lost, and what goes on ends in the bits of a run that nobody disturbed.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/folders.h"
#include "policy/timing.h"
#include "tests/datasets/recorded_set.h"
#include "tests/support/program.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;
using mjp_test::Outcome;
using ::testing::AnyOf;
using ::testing::HasSubstr;

using Damage = std::function<void(const std::string& path)>;
using Files = std::map<std::string, std::string>;

void Instead(const std::string& path, const std::function<void()>& make) {
  fs::remove_all(path);
  make();
}

// What can become of any file.
const std::vector<std::pair<std::string, Damage>> kDamages = {
    {"is empty", [](const std::string& path) { fs::resize_file(path, 0); }},
    {"is half", [](const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); }},
    {"has holes of 40 GiB", [](const std::string& path) { fs::resize_file(path, 40ull << 30); }},
    {"is a text", [](const std::string& path) { WriteFileAtomically(path, "hello"); }},
    {"is a folder",
     [](const std::string& path) { Instead(path, [&] { fs::create_directory(path); }); }},
    {"is a FIFO",
     [](const std::string& path) { Instead(path, [&] { mkfifo(path.c_str(), 0600); }); }},
    {"is a link to itself",
     [](const std::string& path) { Instead(path, [&] { fs::create_symlink(path, path); }); }},
};

// One of the trainers: where its runs are described, and what else it writes.
struct Trainer {
  std::string name, describes;
  std::vector<std::string> logs;
};
void PrintTo(const Trainer& trainer, std::ostream* out) { *out << trainer.name; }

class RunFaultsTest : public ::testing::TestWithParam<Trainer> {
 protected:
  void SetUp() override {
    datasets::DatasetWriter writer(dir_ / "set", mjp_test::RecordedInfo("image"));
    for (int64_t episode = 0; episode < 3; ++episode) mjp_test::RecordEpisode(writer, episode);
    writer.Finish();
  }

  // So many steps of a training in `out`. `before`: settings of the shell.
  Outcome Train(const std::string& out, int steps, const std::string& before = "") const {
    const std::string images =
        IMAGE_DIFFUSION
        " train --dataset digits --pictures 44 --image-size 8 --batch-size 20 "
        "--unet-channels 16 --log-every 1 --sample-every 0 --epochs " +
        std::to_string(steps / 2.0);
    const std::string policies =
        MJPOLICY_TRAIN_PROGRAM " --dataset " + dir_ / "set" +
        " --device cpu --threads 1 --log-every 1 --batch 2 --draws 1 --horizon 8 --unet-channels "
        "16 32 --stage-channels 16 16 --stem-channels 8 --validation 0 --steps " +
        std::to_string(steps);
    const bool image = GetParam().name == "image-diffusion";
    return mjp_test::Run(before + " timeout 100 " + (image ? images : policies) + " --out " +
                         dir_ / out);
  }
  void Copy(const std::string& from, const std::string& to) const {
    fs::remove_all(dir_ / to);
    fs::copy(dir_ / from, dir_ / to, fs::copy_options::recursive);
  }
  // Every regular file below a run's folder but TensorBoard's.
  Files Content(const std::string& out) const {
    Files files;
    for (const auto& entry : fs::recursive_directory_iterator(dir_ / out)) {
      const std::string name = entry.path().lexically_relative(dir_ / out).string();
      std::error_code none;  // links that lead nowhere
      if (!entry.is_regular_file(none) || entry.file_size(none) > 1 << 26 ||
          name.starts_with("tensorboard")) {
        continue;
      }
      files[name] = ReadFile(entry.path().string(), 1 << 26);
    }
    return files;
  }
  // The weights of two runs are the same, and nothing half written lies there.
  void ExpectSame(const std::string& out, const std::string& whole) const {
    Files mine = Content(out), theirs = Content(whole);
    for (const auto& [name, content] : mine)
      EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
    const char* weights = "checkpoint/model.safetensors";
    EXPECT_TRUE(mine[weights] == theirs[weights]) << out << " has other weights than " << whole;
  }
  void ExpectDefined(const Outcome& outcome) const {
    EXPECT_THAT(outcome.code, AnyOf(0, 2)) << outcome.text;
    if (outcome.code == 0) return;
    EXPECT_THAT(outcome.text, HasSubstr(GetParam().name + ": error: "));
  }

  const mjp_test::TempDir dir_;
};

TEST_P(RunFaultsTest, AStateThatIsDamagedIsRefusedAndNothingElseIsTouched) {
  ASSERT_EQ(Train("run", 2).code, 0);
  for (const std::string& file : {std::string("state.safetensors"), GetParam().describes}) {
    for (const auto& [kind, damage] : kDamages) {
      SCOPED_TRACE(file + " " + kind);
      Copy("run", "bad");
      damage(dir_ / ("bad/" + file));
      const Files before = Content("bad");
      const Outcome outcome = Train("bad", 4);
      EXPECT_EQ(outcome.code, 2) << outcome.text;
      EXPECT_THAT(outcome.text, HasSubstr(dir_ / ("bad/" + file)));
      EXPECT_TRUE(Content("bad") == before);
    }
  }
}

TEST_P(RunFaultsTest, WhatARunWritesAnewMayBeAnything) {
  ASSERT_EQ(Train("run", 2).code, 0);
  Copy("run", "whole");
  ASSERT_EQ(Train("whole", 4).code, 0);
  std::vector<std::string> files = GetParam().logs;
  files.insert(files.end(), {"checkpoint/model.safetensors", "checkpoint/config.json"});
  for (const std::string& file : files) {
    for (const auto& [kind, damage] : kDamages) {
      SCOPED_TRACE(file + " " + kind);
      Copy("run", "bad");
      damage(dir_ / ("bad/" + file));
      const Outcome outcome = Train("bad", 4);
      ExpectDefined(outcome);
      if (outcome.code == 0) {
        ExpectSame("bad", "whole");
      } else {
        EXPECT_THAT(outcome.text, HasSubstr(fs::path(file).parent_path().string()));
      }
    }
  }
}

// No file may become larger than that, as where the disk is full.
TEST_P(RunFaultsTest, AFullDiskLosesNothing) {
  ASSERT_EQ(Train("begun", 2).code, 0);
  Copy("begun", "whole");
  ASSERT_EQ(Train("whole", 4).code, 0);
  const Files before = Content("begun");
  int refused = 0;
  for (const int blocks : {0, 1, 8, 64, 1024, 8192}) {
    SCOPED_TRACE(blocks);
    Copy("begun", "run");
    const Outcome outcome = Train("run", 4, "ulimit -f " + std::to_string(blocks) + ";");
    ExpectDefined(outcome);
    refused += outcome.code != 0;
    if (outcome.code != 0) {  // the last state is there
      EXPECT_EQ(Content("run").at("state.safetensors").size(),
                before.at("state.safetensors").size());
    }
    ASSERT_EQ(Train("run", 4).code, 0);
    ExpectSame("run", "whole");
  }
  EXPECT_GT(refused, 2);
}

TEST_P(RunFaultsTest, SignalsEndARunThatGoesOn) {
  const std::vector<std::pair<std::string, int>> signals = {
      {"INT", 130}, {"HUP", 129}, {"TERM", 143}};
  int begun = 0;
  for (int tenths = 1; tenths < 40; tenths += 6) {
    const auto& [signal, code] = signals[static_cast<size_t>(tenths / 6) % signals.size()];
    SCOPED_TRACE(signal + " after " + std::to_string(tenths) + "/10 s");
    const Outcome outcome =
        Train("run", 2000000,
              "timeout --preserve-status -s " + signal + " " + std::to_string(tenths / 10) + "." +
                  std::to_string(tenths % 10));
    EXPECT_EQ(outcome.code, code) << outcome.text;
    EXPECT_EQ(outcome.text.find("error"), std::string::npos) << outcome.text;
    begun += outcome.text.find("start the same command again to go on") != std::string::npos;
  }
  EXPECT_GT(begun, 0);
}

TEST_P(RunFaultsTest, KilledAtAnyTimeItEndsInTheSameBits) {
  const double begin = mjp::Now();
  ASSERT_EQ(Train("whole", 30).code, 0);
  const double whole = mjp::Now() - begin;
  int killed = 0;
  // A whole run may have taken many times what a later one takes, where the machine had other work.
  for (const double part : {64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2}) {
    const std::string limit = std::to_string(whole / part);
    killed += Train("run", 30, "timeout -s KILL " + limit).code != 0;
  }
  EXPECT_GT(killed, 1);
  ASSERT_EQ(Train("run", 30).code, 0);
  ExpectSame("run", "whole");
}

INSTANTIATE_TEST_SUITE_P(
    Trainers, RunFaultsTest,
    ::testing::Values(Trainer{"image-diffusion", "run.json", {"log.jsonl"}},
                      Trainer{"mjpolicy-train", "data.json", {"log.jsonl", "loss.csv"}}),
    [](const auto& info) { return std::string(info.index == 0 ? "Pictures" : "Policies"); });

}  // namespace
}  // namespace mjp::app
