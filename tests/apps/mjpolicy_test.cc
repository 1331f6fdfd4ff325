// The program as a user runs it: exit codes, messages, files.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/npy.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "tasks/results/results_folder.h"
#include "tests/support/program.h"
#include "tests/support/renderer.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

using mjp_test::Outcome;
using mjp_test::RunMjpolicy;

class MjpolicyTest : public mjp_test::ProgramTest {
 protected:
  // The lines of the episodes without their timing, and without the smoothness, which the batch
  // alone measures.
  std::string Episodes(const std::string& out) const {
    std::string text;
    for (EpisodeResult e : ReadEpisodes(Path(out) + "/episodes.jsonl", false)) {
      e.seconds = 0;
      e.smoothness.reset();
      text += ToJsonLine(e) + "\n";
    }
    return text;
  }
};

TEST_F(MjpolicyTest, VersionAndHelp) {
  const Outcome version = RunMjpolicy("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_NE(version.text.find("MuJoCo 4.0.1"), std::string::npos) << version.text;
  EXPECT_EQ(RunMjpolicy("--help").code, 0);
  EXPECT_EQ(RunMjpolicy("evaluate --help").code, 0);
}

TEST_F(MjpolicyTest, UsageErrorsEndWithOne) {
  for (const char* arguments :
       {"", "nonsense", "evaluate", "evaluate --episodes many", "bench unknown",
        "bench --peer unknown", "render --renderer crayon",
        "evaluate --checkpoint x --out y --success nan", "bench physics --seconds inf",
        "bench physics --parallel 16,", "bench physics --parallel -1",
        "bench physics --parallel 16,nan", "bench physics --parallel 16 --sequential"}) {
    EXPECT_EQ(RunMjpolicy(arguments).code, 1) << arguments;
  }
}

TEST_F(MjpolicyTest, AnUnknownTaskIsRefusedWithTheKnownOnes) {
  for (const char* command :
       {"evaluate --checkpoint x --out y", "demonstrate --out y", "profile",
        "render --states x --out y", "replay --actions x --ends x --starts x --out y"}) {
    const Outcome outcome = RunMjpolicy(std::string(command) + " --task chess");
    EXPECT_EQ(outcome.code, 1) << command;
    EXPECT_NE(outcome.text.find("--task: chess not in {pusht"), std::string::npos) << outcome.text;
  }
  ASSERT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 1 --task pusht").code, 0);
  EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 1 --resume").code, 0);
}

TEST_F(MjpolicyTest, EvaluateWritesWhatItPromises) {
  const Outcome outcome = RunMjpolicy(Evaluate("a") + "--episodes 3 --videos 1");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("success"), std::string::npos);
  std::ifstream file(folder_.path() + "/a/eval_info.json");
  const nlohmann::json info = nlohmann::json::parse(file);
  const nlohmann::json& overall = info.at("overall");
  EXPECT_EQ(overall.at("n_episodes"), 3);
  for (const char* key : {"avg_sum_reward", "avg_max_reward", "pc_success", "eval_s", "eval_ep_s",
                          "video_paths", "n_success", "pc_success_ci95", "avg_final_coverage"}) {
    EXPECT_TRUE(overall.contains(key)) << key;
  }
  const nlohmann::json& metrics = info.at("per_task").at(0).at("metrics");
  EXPECT_EQ(metrics.at("max_rewards").size(), 3u);
  const std::string video = overall.at("video_paths").at(0);
  EXPECT_GT(fs::file_size(video), 1000u);
}

TEST_F(MjpolicyTest, ExistingResultsAreSafe) {
  ASSERT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 2").code, 0);
  const std::string before = Episodes("a");
  EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 2").code, 1);
  EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 2 --seed 5 --resume").code, 2);
  const Outcome held = RunMjpolicy(Evaluate("a") + "--episodes 2 --hold-noise 2 --resume");
  EXPECT_EQ(held.code, 2);
  EXPECT_NE(held.text.find("--hold-noise was 1, is 2"), std::string::npos) << held.text;
  EXPECT_EQ(Episodes("a"), before);
  EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 2 --resume").code, 0);
  EXPECT_EQ(Episodes("a"), before);
  EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 1 --overwrite").code, 0);
}

TEST_F(MjpolicyTest, ResumingNothingIsSaid) {
  const Outcome started = RunMjpolicy(Evaluate("mistyped") + "--episodes 1 --resume");
  EXPECT_EQ(started.code, 0);
  EXPECT_NE(started.text.find("mistyped: holds no results to go on with"), std::string::npos)
      << started.text;
  const Outcome complete = RunMjpolicy(Evaluate("mistyped") + "--episodes 1 --resume");
  EXPECT_EQ(complete.text.find("holds no results"), std::string::npos) << complete.text;
}

TEST_F(MjpolicyTest, ShortChunksHoldTheirNoise) {
  const std::string options = "--episodes 3 --action-steps 1 ";
  ASSERT_EQ(RunMjpolicy(Evaluate("auto") + options).code, 0);
  const Outcome through = RunMjpolicy(Evaluate("plugin") + options + "--through plugin");
  ASSERT_EQ(through.code, 0);
  EXPECT_EQ(through.text.find("warning"), std::string::npos) << through.text;
  ASSERT_EQ(RunMjpolicy(Evaluate("held") + options + "--hold-noise 8").code, 0);
  ASSERT_EQ(RunMjpolicy(Evaluate("fresh") + options + "--hold-noise 1").code, 0);
  EXPECT_EQ(Episodes("auto"), Episodes("held"));
  EXPECT_EQ(Episodes("auto"), Episodes("plugin"));
  EXPECT_NE(Episodes("auto"), Episodes("fresh"));
  EXPECT_EQ(RunMjpolicy(Evaluate("auto") + options + "--hold-noise 8 --resume").code, 0);
  EXPECT_EQ(RunMjpolicy(Evaluate("auto") + options + "--hold-noise 1 --resume").code, 2);
}

TEST_F(MjpolicyTest, InterruptedEvaluationGoesOn) {
  const std::string out = folder_.path() + "/b";
  const pid_t child = mjp_test::StartMjpolicy(Evaluate("b") + "--episodes 400 --batch 4");
  // wait until some episodes are there
  for (int i = 0; i < 600; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::error_code none;
    if (fs::file_size(out + "/episodes.jsonl", none) > 500 && !none) break;
  }
  ::kill(child, SIGINT);
  ASSERT_EQ(mjp_test::Wait(child), 130);
  ASSERT_EQ(RunMjpolicy(Evaluate("b") + "--episodes 400 --batch 4 --resume").code, 0);
  ASSERT_EQ(RunMjpolicy(Evaluate("whole") + "--episodes 400 --batch 64").code, 0);
  EXPECT_EQ(Episodes("b"), Episodes("whole"));
}

TEST_F(MjpolicyTest, BadFilesEndWithTwoAndAreNamed) {
  const Outcome absent = RunMjpolicy("inspect " + folder_.path() + "/absent");
  EXPECT_EQ(absent.code, 2);
  EXPECT_NE(absent.text.find("absent"), std::string::npos) << absent.text;
  EXPECT_EQ(absent.text.find("hf download"), std::string::npos) << absent.text;
  const std::string hub = RunMjpolicy("inspect lerobot/diffusion_pusht").text;
  EXPECT_NE(hub.find("hf download lerobot/diffusion_pusht --local-dir diffusion_pusht"),
            std::string::npos)
      << hub;
  fs::resize_file(checkpoint_ + "/model.safetensors", 1000);
  const Outcome torn = RunMjpolicy("inspect " + checkpoint_);
  EXPECT_EQ(torn.code, 2);
  EXPECT_NE(torn.text.find("model.safetensors"), std::string::npos) << torn.text;
  EXPECT_EQ(RunMjpolicy(Evaluate("c") + "--episodes 1").code, 2);
  EXPECT_FALSE(fs::exists(folder_.path() + "/c/episodes.jsonl"));
  EXPECT_EQ(RunMjpolicy("render --states /dev/null --out " + folder_.path() + "/x.npy").code, 2);
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Outcome outcome = RunMjpolicy("bench physics --seconds 0.01 --json " + pipe);
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("is a device or a pipe"), std::string::npos) << outcome.text;
  EXPECT_TRUE(std::filesystem::is_fifo(pipe)) << "it is still there";
}

// A change of a good file of observations, and what the refusal or the word about it says.
TEST_F(MjpolicyTest, InferReadsWhatItKnowsAndNamesTheRest) {
  struct Tensor {
    std::vector<int64_t> shape;
    bool bytes = false;
    float value = 99;  // of each element
  };
  using File = std::map<std::string, Tensor>;
  const File good = {{"in/frames_u8", {{1, 2, 1, 96, 96, 3}, true}}, {"in/agent_pos", {{1, 2, 2}}}};
  struct Row {
    const char* what;
    std::function<void(File&)> change;
    int code;
    const char* said;
  };
  const Row rows[] = {
      {"as documented", [](File&) {}, 0, "1 environment, "},
      {"one camera left out",
       [](File& f) {
         f["in/frames_u8"].shape = {1, 2, 96, 96, 3};
       },
       0, ""},
      {"one environment left out",
       [](File& f) {
         f["in/agent_pos"].shape = {2, 2};
       },
       0, ""},
      {"channels first",
       [](File& f) {
         f["in/frames_u8"].shape = {1, 2, 3, 96, 96};
       },
       2, "in/frames_u8 has shape (1, 2, 3, 96, 96), expected (N, 2, 1, 96, 96, 3)"},
      {"camera elsewhere", [](File& f) { f["in/frames_u8"].shape = {1, 2, 96, 96, 1, 3}; }, 2,
       "in/frames_u8 has shape"},
      {"flat",
       [](File& f) {
         f["in/agent_pos"].shape = {1, 4};
       },
       2, "in/agent_pos has shape (1, 4)"},
      {"another count",
       [](File& f) {
         f["in/agent_pos"].shape = {2, 2, 2};
       },
       2, "environments"},
      {"unknown", [](File& f) { f["in/foo"].shape = {1}; }, 2, "has in/foo, which nothing here"},
      {"LeRobot's name misspelt", [](File& f) { f["in/observation.stat"].shape = {1}; }, 2,
       "in/observation.state"},
      {"misspelt",
       [](File& f) {
         f["agent_pos"] = f["in/agent_pos"];
         f.erase("in/agent_pos");
       },
       2,
       "lacks in/agent_pos of shape (N, 2, 2), which this policy looks at; the file has agent_pos"},
      {"of another policy",
       [](File& f) {
         f["in/env_state"].shape = {1, 2, 16};
       },
       0, "not read: in/env_state, which the policy does not look at"},
      {"a comment", [](File& f) { f["out/seen"].shape = {1}; }, 0, "not read: out/seen"},
      {"not finite", [](File& f) { f["in/agent_pos"].value = NAN; }, 2,
       "in: in/agent_pos: element 0 is not finite"},
      {"noise",
       [](File& f) {
         f["in/noise_by_t"].shape = {1, 100, 16, 2};
       },
       2, "expected (100, N, 16, 2)"},
  };
  for (const Row& row : rows) {
    File file = good;
    row.change(file);
    mjp::SafetensorsWriter observations;
    for (const auto& [name, tensor] : file) {
      size_t size = 1;
      for (const int64_t extent : tensor.shape) size *= static_cast<size_t>(extent);
      if (tensor.bytes) {
        observations.AddBytes(name, tensor.shape, std::vector<uint8_t>(size, 99));
      } else {
        observations.AddFloats(name, tensor.shape, std::vector<float>(size, tensor.value));
      }
    }
    observations.Write(folder_ / "in");
    const Outcome outcome =
        RunMjpolicy("infer --backend cpu --sampler ddim --steps 2 --checkpoint " + checkpoint_ +
                    " --input " + (folder_ / "in") + " --out " + (folder_ / "out"));
    EXPECT_EQ(outcome.code, row.code) << row.what << ": " << outcome.text;
    EXPECT_NE(outcome.text.find(row.said), std::string::npos) << row.what << ": " << outcome.text;
  }
}

TEST_F(MjpolicyTest, RandomWeightsReplaceNoCheckpointUnasked) {
  const auto before = fs::last_write_time(checkpoint_ + "/model.safetensors");
  const Outcome refused = RunMjpolicy("random-checkpoint " + checkpoint_);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.text.find("give --force to replace it"), std::string::npos) << refused.text;
  EXPECT_EQ(fs::last_write_time(checkpoint_ + "/model.safetensors"), before);
  EXPECT_EQ(RunMjpolicy("random-checkpoint --force " + checkpoint_).code, 0);
  EXPECT_EQ(RunMjpolicy("inspect " + checkpoint_).code, 0);
}

TEST_F(MjpolicyTest, WrongArgumentsEndWithOneAndAreNamed) {
  const std::string evaluate = "evaluate --checkpoint " + checkpoint_ + " --backend cpu ";
  for (const auto& [arguments, named] : std::map<std::string, std::string>{
           {"evaluat", "no command 'evaluat'"},
           {evaluate + "--out ''", "--out: is empty"},
           {"inspect ''", "checkpoint: is empty"},
           {evaluate + "--out a --seed -1", "--seed: Value -1 not in range 0 to 4294967295"},
           {"random-checkpoint a --seed -1", "--seed: '-1' is not a whole number from 0"},
           {"infer --seed -1", "--seed: '-1' is not a whole number from 0"},
           {evaluate + "--out a --seed 4294967295 --episodes 2", "past the last seed"},
           {evaluate + "--out a --steps 1000", "sampler steps = 1000: allowed are 1 to"},
           {evaluate + "--out a --hold-noise -1", "--hold-noise: Value -1 not in range 0 to 1000"},
           {evaluate + "--out a --hold-noise 1001", "Value 1001 not in range 0 to 1000"},
           {evaluate + "--out a --precision fp16", "the CPU backend computes in fp32 only"}}) {
    const Outcome outcome = RunMjpolicy(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_NE(outcome.text.find(named), std::string::npos) << outcome.text;
  }
}

TEST_F(MjpolicyTest, BenchWritesItsRows) {
  const std::string file = folder_.path() + "/bench.json";
  const Outcome outcome = RunMjpolicy(
      "bench kernels pass chunk parallel decision --decisions 2 --checkpoint " + checkpoint_ +
      " --backend cpu --sampler ddim --steps 2 --seconds 0.01 --json " + file);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::ifstream stream(file);
  const nlohmann::json rows = nlohmann::json::parse(stream).at("rows");
  std::set<std::string> names;
  for (const nlohmann::json& row : rows) {
    const std::string name =
        row.at("suite").get<std::string>() + ", " + std::string(row.at("name"));
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    EXPECT_GT(row.at("n"), 0) << name;
    EXPECT_GT(row.at("median_ms"), 0) << name;
    EXPECT_GE(row.at("p99_ms"), row.at("median_ms")) << name;
  }
  for (const char* name :
       {"kernels, conv1d 512->512 k5 at 8", "kernels, denoise step, DDIM",
        "pass, U-Net pass, batch 1", "chunk, loop, ddim 2, step by step", "decision, denoise"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST_F(MjpolicyTest, BenchLoadsTheBaselineThatTheBuildMakes) {
  const std::string target = "mjpolicy_baseline_torch";
  const std::string list = mjp_test::ReadText(MJPOLICY_SOURCE_DIR "/apps/train/CMakeLists.txt");
  ASSERT_NE(list.find("add_library(" + target + " MODULE"), std::string::npos);
  const Outcome outcome = RunMjpolicy("bench physics --seconds 0.01 --peer torch");
  if (outcome.code == 0) return;  // libtorch is here
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_NE(outcome.text.find("/" + target + ".so"), std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("median"), std::string::npos) << "it measured first";
}

TEST_F(MjpolicyTest, BenchDrawsThePicturesOfDecisions) {
  if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  const Outcome outcome =
      RunMjpolicy("bench decision --renderer mujoco --decisions 2 --checkpoint " + checkpoint_ +
                  " --backend cpu --sampler ddim --steps 2");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("its picture by MuJoCo's renderer"), std::string::npos)
      << outcome.text;
}

TEST_F(MjpolicyTest, ProfileTracesEverySpan) {
  const std::string file = folder_.path() + "/trace.json";
  const Outcome outcome =
      RunMjpolicy("profile --checkpoint " + checkpoint_ +
                  " --backend cpu --sampler ddim --steps 3 --decisions 2 --trace " + file);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::ifstream stream(file);
  const nlohmann::json trace = nlohmann::json::parse(stream);
  std::map<std::string, int> names;
  std::map<int, double> ends;  // of the lines so far: spans of one must not cross
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    ASSERT_EQ(event.at("ph"), "X");
    ++names[event.at("cat").get<std::string>() + ", " + std::string(event.at("name"))];
    const double begin = event.at("ts"), length = event.at("dur");
    EXPECT_GE(length, 0);
    double& end = ends.try_emplace(event.at("tid").get<int>(), 0).first->second;
    EXPECT_GE(begin, end - 1e-4) << event;
    end = begin + length;
  }
  EXPECT_EQ(names["control loop, decision"], 2);
  EXPECT_EQ(names["control loop, scene"], 2);
  EXPECT_EQ(names["stages, render"], 2);
  EXPECT_EQ(names["stages, denoise"], 2);
  EXPECT_EQ(names["denoising steps, pass and step"], 6);
  EXPECT_EQ(names["control loop, physics"], names["control loop, apply"]);
  EXPECT_GT(names["control loop, physics"], 2);
  for (const char* stage : {"physics", "encode", "denoise", "share"})
    EXPECT_NE(outcome.text.find(stage), std::string::npos) << stage;
}

TEST_F(MjpolicyTest, RenderReplayAndInspect) {
  const std::vector<double> states = {200, 300, 256, 256, 0.5, 100, 100, 300, 200, -1};
  WriteNpy(folder_.path() + "/s.npy", MakeNpy(states, {2, 5}));
  ASSERT_EQ(
      RunMjpolicy("render --states " + folder_.path() + "/s.npy --out " + folder_.path() + "/f.npy")
          .code,
      0);
  EXPECT_EQ(ReadNpy(folder_.path() + "/f.npy").shape, (std::vector<int64_t>{2, 96, 96, 3}));
  EXPECT_EQ(RunMjpolicy("inspect " + checkpoint_).code, 0);
}

}  // namespace
}  // namespace mjp::app
