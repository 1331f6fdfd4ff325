// Relations that hold for every file, command and fault: a file that changes changes the identity
// of its checkpoint or is refused; a fault at any write leaves whole files or an error, and the
// command that the error names then gives what it would have given.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "tasks/recording/video_container.h"
#include "tests/metamorphic/write_faults.h"
#include "tests/support/damaged_checkpoint.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/program.h"
#include "tests/support/zarr_files.h"

namespace mjp_test {
namespace {

using testing::HasSubstr;

// ---- a changed file changes the identity --------------------------------------------------------

// The layouts in which statistics come.
enum class Layout { kProcessors, kStatsJson, kInModel };

class IdentityTest : public DamagedCheckpoint, public testing::WithParamInterface<Layout> {
 protected:
  IdentityTest() {
    if (GetParam() == Layout::kProcessors) return;
    const Tensors stats = StatisticsByName();
    for (const char* name : {kPre, kPost, kPreStats, kPostStats}) fs::remove(dir_ / name);
    if (GetParam() == Layout::kStatsJson) {
      Json json = Json::object();
      for (const auto& [name, tensor] : stats) {
        const size_t dot = name.rfind('.');
        json[name.substr(0, dot)][name.substr(dot + 1)] = tensor.data;
      }
      dir_.Write("stats.json", json.dump());
    } else {
      EditTensors(kModel, [&](Tensors& tensors) {
        for (const auto& [name, tensor] : stats) {
          const size_t dot = name.rfind('.');
          std::string buffer = name.substr(0, dot);
          for (char& c : buffer) c = c == '.' ? '_' : c;
          const char* prefix = buffer == "action" ? "unnormalize_outputs." : "normalize_inputs.";
          tensors[prefix + ("buffer_" + buffer) + name.substr(dot)] = tensor;
        }
      });
    }
  }

  // The identity, or nothing where the checkpoint is refused.
  Files Identity() const {
    try {
      return mjp::LoadCheckpoint(path())->files;
    } catch (const mjp::Error&) {
      return {};
    }
  }

 private:
  Tensors StatisticsByName() const {
    Tensors stats;
    const auto file = mjp::SafetensorsFile::Read(dir_ / kPreStats);
    for (const mjp::TensorEntry& entry : file.tensors())
      stats[entry.name] = file.Floats(entry.name);
    return stats;
  }
};

TEST_P(IdentityTest, EveryChangeOfEveryFileIsSeenOrRefused) {
  const Files whole = Identity();
  ASSERT_FALSE(whole.empty());
  size_t present = 0;
  for (const auto& entry : fs::directory_iterator(path())) {
    present += whole.contains(entry.path().filename().string());
  }
  EXPECT_EQ(present, whole.size());
  // every file of the folder is one of them: there is none that counts and is not hashed
  EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(path()), {})), whole.size());
  struct Change {
    const char* what;
    std::function<std::string(std::string)> make;
  };
  const std::vector<Change> changes = {
      {"emptied", [](std::string) { return std::string(); }},
      {"cut", [](std::string text) { return text.substr(0, text.size() - 1); }},
      {"a blank more", [](std::string text) { return text + " "; }},
      {"a newline before", [](std::string text) { return "\n" + text; }},
      {"the first digit",
       [](std::string text) {
         const size_t at = text.find_first_of("123456789");
         text[at] = text[at] == '9' ? '8' : static_cast<char>(text[at] + 1);
         return text;
       }},
      {"the last digit", [](std::string text) {
         const size_t at = text.find_last_of("12345678");
         text[at] = static_cast<char>(text[at] + 1);
         return text;
       }}};
  int loaded = 0;
  for (const auto& [name, hash] : whole) {
    const std::vector<uint8_t> bytes = mjp::ReadFile(dir_ / name, 1 << 20);
    const std::string text(bytes.begin(), bytes.end());
    const auto expect_seen = [&, &name = name, &hash = hash](const std::string& changed,
                                                             const std::string& what) {
      dir_.Write(name, changed);
      const Files now = Identity();
      loaded += !now.empty();
      EXPECT_TRUE(now.empty() || now.at(name) != hash) << name << ": " << what;
    };
    for (const Change& change : changes) expect_seen(change.make(text), change.what);
    std::mt19937 random(3);
    for (int i = 0; i < 12; ++i) {
      std::string flipped = text;
      const size_t at = random() % text.size();
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
      expect_seen(flipped, "a bit of byte " + std::to_string(at));
    }
    dir_.Write(name, text);
  }
  EXPECT_EQ(Identity(), whole);
  EXPECT_GT(loaded, 5) << "most changes were refused: the relation was hardly tried";
}

INSTANTIATE_TEST_SUITE_P(Layouts, IdentityTest,
                         testing::Values(Layout::kProcessors, Layout::kStatsJson, Layout::kInModel),
                         [](const auto& each) {
                           return each.param == Layout::kProcessors  ? "Processors"
                                  : each.param == Layout::kStatsJson ? "StatsJson"
                                                                     : "InModel";
                         });

// ---- a fault leaves whole files or an error -----------------------------------------------------

TEST_F(WriteFaultTest, AnErrorOrAWholeFileEverywhere) {
  const std::string videos = "--episodes 3 --videos 2 --batch 2 ";
  const std::string demonstrate =
      "demonstrate --rows 40 --threads 1 --samples 32 --rounds 1 --out " + Path("out");
  const Command commands[] = {
      {"evaluate", Evaluate("out") + videos, Evaluate("out") + videos + "--overwrite",
       [&] { return Evaluated("out"); }, [&] { ExpectWholeVideos("out"); }},
      {"merge", "merge " + Path("0") + " " + Path("1") + " --out " + Path("out"),
       "merge " + Path("0") + " " + Path("1") + " --out " + Path("out"),
       [&] { return Evaluated("out"); }, [&] { ExpectWholeVideos("out"); }},
      {"demonstrate", demonstrate, demonstrate, [&] { return Content("out"); }},
      {"random-checkpoint", "random-checkpoint " + Path("out"),
       "random-checkpoint --force " + Path("out"), [&] { return Content("out"); },
       [&] {
         try {
           mjp::LoadCheckpoint(Path("out"));
         } catch (const mjp::Error&) {
         }
       }}};
  for (const Command& command : commands) Try(command);
}

// what came after the first ones: other tasks, other networks, data sets
TEST_F(WriteFaultTest, AnErrorOrAWholeFileOfTheNewerCommands) {
  mjp::ActPolicyConfig config = SmallActConfig();
  config.cameras.resize(1);
  folder_.Write("config.json", mjp::ConfigToJson(*ActCheckpoint(config)).dump());
  const std::string transfers =
      "demonstrate --task aloha_transfer_cube --episodes 1 --threads 1 --out " + Path("out");
  const std::string act = " --config " + Path("config.json") + " --formula salt " + Path("out");
  WriteZarr(folder_, "zarr");
  const std::string convert = "convert " + Path("zarr") + " " + Path("out") + " --task t --fps 10";
  const Command commands[] = {
      {"transfers", transfers, transfers,
       [&] {
         for (const auto& entry : fs::directory_iterator(folder_.path())) {
           EXPECT_FALSE(entry.path().filename().string().starts_with("out.")) << entry.path();
         }
         return Content("out");
       },
       [] {}, [&] { fs::remove_all(Path("out.unfinished")); }},
      {"act", "random-checkpoint" + act, "random-checkpoint --force" + act,
       [&] { return Content("out"); }},
      // after a break episodes go to other files, so it is what the checker finds that is equal
      {"convert", convert, convert, [&] {
         return Files{{"check", RunMjpolicy("dataset " + Path("out")).text}};
       }}};
  for (const Command& command : commands) Try(command);
}

TEST_F(WriteFaultTest, AReplacedCheckpointIsTheOldTheNewOrNone) {
  // both have the shapes of the other, so that a mixture would load
  const auto write = [&](int seed, const std::string& before) {
    return RunMjpolicy("random-checkpoint --force --seed " + std::to_string(seed) + " --range " +
                           std::to_string(seed) + " " + Path("out"),
                       before);
  };
  ASSERT_EQ(write(2, "").code, 0);
  const Files fresh = mjp::LoadCheckpoint(Path("out"))->files;
  ASSERT_EQ(write(1, "").code, 0);
  const Files old = mjp::LoadCheckpoint(Path("out"))->files;
  int failed = 0;
  for (const std::string& fault : WriteFaults()) {
    ASSERT_EQ(write(1, "").code, 0);
    const Outcome outcome = write(2, fault);
    failed += outcome.code != 0;
    try {
      const Files now = mjp::LoadCheckpoint(Path("out"))->files;
      EXPECT_TRUE(now == fresh || (now == old && outcome.code != 0)) << fault << outcome.text;
    } catch (const mjp::Error&) {
      EXPECT_NE(outcome.code, 0) << fault << outcome.text;
    }
    for (const auto& [name, content] : Content("out")) {
      EXPECT_EQ(name.find(".unfinished"), std::string::npos) << fault << ": " << name;
    }
  }
  EXPECT_GT(failed, 3);
}

TEST_F(WriteFaultTest, KilledWithVideosAndResumedInAnyOrderOfFlags) {
  const std::string videos = "--episodes 3 --videos 3 --batch 2 ";
  ASSERT_EQ(RunMjpolicy(Evaluate("out") + videos).code, 0);
  const Files whole = Content("out/videos");
  ASSERT_EQ(whole.size(), 3u);
  std::mt19937 random(11);
  for (int i = 0; i < 8; ++i) {
    fs::remove_all(Path("out"));
    const pid_t child = StartMjpolicy(Evaluate("out") + videos);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 700));
    ::kill(child, SIGKILL);
    Wait(child);
    const bool with_videos = i % 2 == 0;
    const Outcome resumed = RunMjpolicy(
        Evaluate("out") + (with_videos ? videos : "--episodes 3 --batch 2 ") + "--resume");
    ASSERT_EQ(resumed.code, 0) << resumed.text;
    ExpectWholeVideos("out", true);
    Files now = Content("out/videos");
    std::erase_if(now, [](const auto& each) { return mjp::app::IsUnfinishedVideo(each.first); });
    for (const auto& [name, content] : now) {
      EXPECT_TRUE(whole.contains(name) && whole.at(name) == content) << name;
    }
    const Json info = mjp::ReadJson(Path("out/eval_info.json"));
    EXPECT_EQ(info["overall"]["video_paths"].size(), now.size());
  }
}

// ffmpeg, when its writer is killed, completes what it has and writes it late, by name.
TEST_F(WriteFaultTest, AnEncoderThatOutlivesAKillCompletesNothingIntoTheResults) {
  fs::create_directory(Path("bin"));
  std::ofstream(Path("bin/ffmpeg")) << "#!/bin/sh\ntouch " << Path("begun") << "\n"
                                    << "for last; do :; done\ncat >/dev/null\nsleep 1\n"
                                    << "echo stub >\"$last\"\ntouch " << Path("late") << "\n";
  fs::permissions(Path("bin/ffmpeg"), fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (Path("bin") + ":" + path).c_str(), 1);
  const pid_t child = StartMjpolicy(Evaluate("out") + "--episodes 200 --videos 3 --batch 4");
  for (int i = 0; i < 6000 && !fs::exists(Path("begun")); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ::kill(child, SIGKILL);
  Wait(child);
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_EQ(RunMjpolicy(Evaluate("out") + "--episodes 200 --batch 4 --resume").code, 0);
  for (int i = 0; i < 500 && !fs::exists(Path("late")); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(fs::exists(Path("late"))) << "no encoder outlived the kill: nothing was tried";
  for (const auto& [name, content] : Content("out/videos")) {
    EXPECT_TRUE(mjp::app::IsUnfinishedVideo(name)) << name;
  }
  EXPECT_THAT(Results("out"), HasSubstr("\"video_paths\": []"));
}

TEST_F(WriteFaultTest, AnEncoderThatSaysWellAndIsNotIsAnError) {
  fs::create_directory(Path("bin"));
  std::ofstream(Path("bin/ffmpeg"))
      << "#!/bin/sh\nfor last; do :; done\ncat >/dev/null\necho stub >\"$last\"\nexit 0\n";
  fs::permissions(Path("bin/ffmpeg"), fs::perms::owner_all);
  const Outcome outcome =
      RunMjpolicy(Evaluate("out") + "--episodes 2 --videos 2", "PATH=" + Path("bin") + ":$PATH");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("mp4: the video is not complete: it"));
  ExpectWholeVideos("out");
  EXPECT_TRUE(Content("out/videos").empty());
}

TEST_F(WriteFaultTest, HangUpStopsAsTerminateDoes) {
  const std::string evaluation = "--episodes 400 --batch 4 ";
  const pid_t child = StartMjpolicy(Evaluate("out") + evaluation);
  for (int i = 0; i < 600; ++i) {
    std::error_code none;
    if (fs::file_size(Path("out/episodes.jsonl"), none) > 500 && !none) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(child, SIGHUP);
  EXPECT_EQ(Wait(child), 129);
  const Outcome resumed = RunMjpolicy(Evaluate("out") + evaluation + "--resume");
  EXPECT_EQ(resumed.code, 0) << resumed.text;
}

TEST_F(WriteFaultTest, CompleteResultsAreCompleteWhereNothingCanBeWritten) {
  const std::string evaluation = Evaluate("out") + "--episodes 3 --videos 1 ";
  ASSERT_EQ(RunMjpolicy(evaluation).code, 0);
  const Files before = Content("out");
  // no file may be opened for writing, as in a folder without that right
  const Outcome again = RunMjpolicy(evaluation + "--resume", "ulimit -f 0;");
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("complete already"));
  EXPECT_EQ(Content("out"), before);
}

// How the pictures of the training were drawn changes no action, and sets no evaluations apart.
TEST_F(WriteFaultTest, AnotherLookIsTheSameEvaluation) {
  const std::string evaluation = Evaluate("out") + "--episodes 3 ";
  ASSERT_EQ(RunMjpolicy(evaluation).code, 0);
  for (const char* look :
       {R"({"renderer": "raster", "drawn_shape": [96, 96]})",
        R"({"renderer": "raster", "drawn_shape": [512, 512]})",
        R"({"renderer": "mujoco", "drawn_shape": [96, 96], "samples": 4, "shadows": true,
            "reflections": true, "skybox": true, "haze": true, "fog": false})"}) {
    folder_.Write("policy/look.json", "{\"observation.image\": " + std::string(look) + "}");
    const Outcome complete = RunMjpolicy(evaluation + "--resume");
    EXPECT_EQ(complete.code, 0) << complete.text;
    EXPECT_THAT(complete.text, HasSubstr("complete already"));
    fs::remove(Path("out/eval_info.json"));
    EXPECT_EQ(RunMjpolicy(evaluation + "--resume").code, 0);
    const std::string half = Evaluate("1") + "--overwrite --episodes 3 --shard 1/2";
    EXPECT_EQ(RunMjpolicy(half).code, 0);
    const Outcome merged =
        RunMjpolicy("merge " + Path("0") + " " + Path("1") + " --overwrite --out " + Path("both"));
    EXPECT_EQ(merged.code, 0) << merged.text;
    EXPECT_EQ(RunMjpolicy("compare " + Path("out") + " " + Path("both")).code, 0);
  }
}

// A summary says what its episodes give, or --resume says that it does not.
TEST_F(WriteFaultTest, AnEditedSummaryIsNotPassedOn) {
  const std::string evaluation = Evaluate("out") + "--episodes 3 ";
  ASSERT_EQ(RunMjpolicy(evaluation).code, 0);
  const std::string file = Path("out/eval_info.json"), whole = ReadText(file);
  for (const std::string place :
       {"overall/pc_success", "overall/avg_max_reward", "overall/n_success",
        "overall/pc_success_ci95/0", "per_group/pusht/pc_success", "per_task/0/metrics/successes/1",
        "per_task/0/metrics/max_rewards/2", "run/seed", "run/conditions/latency", "partial",
        "invalid"}) {
    mjp::Json summary = mjp::Json::parse(whole);
    const mjp::Json::json_pointer at("/" + place);
    ASSERT_TRUE(summary.contains(at)) << place;
    summary[at] = 77;
    std::ofstream(file) << summary.dump();
    for (const char* more : {"--resume", "--resume --json"}) {
      const Outcome edited = RunMjpolicy(evaluation + more);
      EXPECT_EQ(edited.code, 2) << edited.text;
      EXPECT_THAT(edited.text, HasSubstr(place + " is 77, but the episodes give"));
    }
  }
  for (const std::string text : {"[]", "{}", "3", "{\"overall\": 3}"}) {
    std::ofstream(file) << text;
    EXPECT_EQ(RunMjpolicy(evaluation + "--resume").code, 2) << text;
  }
  std::filesystem::remove(file);
  EXPECT_EQ(RunMjpolicy(evaluation + "--resume").code, 0);
  EXPECT_EQ(mjp::Json::parse(ReadText(file))["overall"]["n_episodes"], 3);
}

}  // namespace
}  // namespace mjp_test
