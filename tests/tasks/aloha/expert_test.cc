#include "tasks/aloha/expert.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/npy.h"
#include "tasks/aloha/demonstrations.h"
#include "tasks/aloha/mishap.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

TEST(TransferExpertTest, HandsTheCubeOver) {
  TransferCube simulation;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const TransferEpisode episode = PlayTransfer({}, seed, simulation);
    EXPECT_GE(episode.first_success, 0) << "seed " << seed;
    EXPECT_TRUE(episode.handed_over) << "seed " << seed;
    // what is recorded can be learnt: no joint of an arm is told to jump
    for (size_t t = 1; t < episode.actions.size(); ++t) {
      for (int i = 0; i < 14; ++i) {
        ASSERT_NEAR(episode.actions[t][i], episode.actions[t - 1][i], 0.12)
            << "seed " << seed << ", step " << t << ", number " << i;
      }
    }
  }
}

TEST(TransferExpertTest, SameSeedSameBits) {
  TransferCube simulation, other;
  const TransferEpisode episode = PlayTransfer({}, 3, simulation);
  PlayTransfer({.noise = 0.01}, 4, other);  // leaves nothing behind
  const TransferEpisode again = PlayTransfer({}, 3, other);
  EXPECT_EQ(episode.actions, again.actions);
  EXPECT_EQ(episode.states, again.states);
  EXPECT_NE(episode.actions, PlayTransfer({.variety = false}, 3, other).actions);
}

TEST(TransferExpertTest, LabelsAreTheExpertsWhateverTheNoise) {
  TransferCube simulation;
  const TransferEpisode episode = PlayTransfer({.noise = 0.005}, 5, simulation);
  EXPECT_TRUE(episode.handed_over);
  for (size_t t = 2; t < 40; ++t) {
    // a smooth way: a straight line through three of its steps
    for (int i = 7; i < 13; ++i) {
      const double bend =
          episode.actions[t][i] - 2 * episode.actions[t - 1][i] + episode.actions[t - 2][i];
      EXPECT_NEAR(bend, 0, 0.01) << "step " << t << ", number " << i;
    }
  }
}

// Two of each: 8 of 8 here; on another processor the physics may differ in the last bit.
TEST(TransferExpertTest, GoesOnAfterMishaps) {
  TransferCube simulation;
  int solved = 0;
  for (uint32_t seed = 2000; seed < 2008; ++seed) {
    const TransferEpisode episode = PlayTransfer({.mishaps = true}, seed, simulation);
    ASSERT_TRUE(episode.counts) << "seed " << seed;
    solved += episode.handed_over;
  }
  EXPECT_GE(solved, 7);
}

TEST(TransferExpertTest, TheLeftHandFetchesWhatTheRightOneCannotReach) {
  TransferCube simulation;
  simulation.Start(std::array<mjtNum, 7>{-0.3, 0.5, 0.02, 1, 0, 0, 0});
  TransferExpert expert(simulation.model());
  expert.Begin({});
  for (int t = 0; t < 300; ++t) simulation.Step(expert.Act(simulation.data()));
  EXPECT_TRUE(simulation.HandedOver());
}

TEST(TransferExpertTest, StaysWhereNoHandReachesTheCube) {
  TransferCube simulation;
  simulation.Start(std::array<mjtNum, 7>{0, 1.6, 0.02, 1, 0, 0, 0});
  TransferExpert expert(simulation.model());
  expert.Begin({});
  const AlohaNumbers before = simulation.State();
  for (int t = 0; t < 30; ++t) {
    const AlohaNumbers action = expert.Act(simulation.data());
    EXPECT_EQ(expert.stage(), Stage::kLost);
    for (int i = 0; i < 14; ++i) EXPECT_NEAR(action[i], before[i], 0.05) << "number " << i;
    simulation.Step(action);
  }
}

TEST(TransferDemonstrationsTest, RecordingsDoNotDependOnThreads) {
  const mjp_test::TempDir folder;
  const std::atomic<bool> never = false;
  std::string reports[2];
  std::vector<std::vector<uint8_t>> files[2];
  for (const int run : {0, 1}) {
    TransferOptions options;
    options.episodes = 2;
    options.seed = 40;
    options.threads = 1 + run;
    options.out = folder.path() + "/out" + std::to_string(run);
    std::ostringstream report;
    ASSERT_TRUE(RunTransfers(options, report, never));
    reports[run] = report.str();
    for (const char* name : {"state", "action", "episode_ends", "seed"})
      files[run].push_back(ReadNpy(options.out + "/" + name + ".npy").bytes);
  }
  EXPECT_EQ(reports[0], reports[1]);
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(files[0][0].size(), size_t{2} * TransferCube::kSteps * 14 * sizeof(double));
  EXPECT_NE(reports[0].find("reward 4 in 2 of 2"), std::string::npos) << reports[0];
  // what was recorded, played again from its seed
  TransferCube simulation;
  simulation.Start(40);
  EXPECT_EQ(0, std::memcmp(simulation.State().data(), files[0][0].data(), 14 * sizeof(double)));
}

// nothing is replaced, mixed or found to be impossible after the work
TEST(TransferExpertTest, RecordingsAreTheWholeOfAFolderOfTheirOwn) {
  const mjp_test::TempDir folder;
  const std::atomic<bool> never = false;
  std::ostringstream report;
  const auto refusal = [&](const TransferOptions& options) -> std::string {
    try {
      EXPECT_TRUE(RunTransfers(options, report, never));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  folder.Write("file", "of another kind");
  // in a million episodes, which would take days
  TransferOptions options = {.episodes = 1000000, .threads = 1, .out = folder.path()};
  EXPECT_NE(refusal(options).find("is not empty"), std::string::npos);
  options.out = folder / "file";
  EXPECT_NE(refusal(options).find("/file"), std::string::npos);
  options.out = folder / "file/out";
  EXPECT_NE(refusal(options).find("/file/out"), std::string::npos);
  options.out = folder / "out";
  options.seed = 0xffffffff;
  EXPECT_NE(refusal(options).find("less than 2^32"), std::string::npos);
  EXPECT_EQ(refusal({.episodes = 1, .out = folder / "out/"}), "");
  const std::vector<uint8_t> first = ReadNpy(folder / "out/state.npy").bytes;
  EXPECT_NE(refusal({.episodes = 1, .seed = 7, .out = folder / "out"}).find("is not empty"),
            std::string::npos);
  EXPECT_EQ(ReadNpy(folder / "out/state.npy").bytes, first);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    left.push_back(entry.path().filename());
  EXPECT_EQ(left.size(), 2u) << "nothing unfinished stays behind";
}

// what was finished before a stop is taken from there, and the end is that of an unbroken run
TEST(TransferExpertTest, StoppedRecordingsKeepTheirFinishedEpisodes) {
  const mjp_test::TempDir folder;
  const std::atomic<bool> never = false;
  std::ostringstream report;
  TransferOptions options = {.episodes = 3, .threads = 1, .out = folder / "whole"};
  ASSERT_TRUE(RunTransfers(options, report, never));
  options.out = folder / "out";
  const std::string kept = folder / "out.unfinished/0.npy";
  std::atomic<bool> stop = false;
  std::thread stopper([&] {
    while (!std::filesystem::exists(kept)) std::this_thread::yield();
    stop = true;
  });
  EXPECT_FALSE(RunTransfers(options, report, stop));
  stopper.join();
  EXPECT_FALSE(std::filesystem::exists(options.out));
  const auto refusal = [&] {
    try {
      RunTransfers(options, report, never);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  options.noise = 0.01;
  EXPECT_NE(refusal().find("options.json: was begun with"), std::string::npos);
  options.noise = 0;
  const std::vector<uint8_t> whole = mjp::ReadFile(kept, 1 << 20);
  std::filesystem::resize_file(kept, whole.size() - 8);
  EXPECT_NE(refusal().find("0.npy"), std::string::npos);
  mjp::WriteFileAtomically(kept, whole);
  ASSERT_TRUE(RunTransfers(options, report, never));
  for (const char* name : {"state.npy", "action.npy", "episode_ends.npy", "seed.npy"}) {
    EXPECT_EQ(mjp::ReadFile(options.out + "/" + name, 1 << 24),
              mjp::ReadFile(folder / "whole/" + name, 1 << 24))
        << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "out.unfinished"));
}

TEST(TransferExpertTest, RefusesAnotherModelByName) {
  const ModelPtr table = LoadModel(ModelPath("pusht.xml"));
  try {
    TransferExpert expert(table.get());
    FAIL() << "Push-T was taken for ALOHA";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    EXPECT_NE(std::string(error.what()).find("vx300s_left/waist"), std::string::npos)
        << error.what();
  }
}

TEST(KinematicsTest, FindsThePosesOfOtherAngles) {
  TransferCube simulation;
  Kinematics kinematics(simulation.model());
  for (const Arm& arm : simulation.scene().arms) {
    const JointAngles there = {0.3, -0.5, 0.9, 0.2, 0.6, -0.4};
    const Frame target = kinematics.ToolPose(arm, there);
    JointAngles angles = {0, -0.96, 1.16, 0, -0.3, 0};
    ASSERT_TRUE(kinematics.Solve(arm, target, 200, angles));
    // where the engine's own forward pass puts the tool
    for (int i = 0; i < kArmJoints; ++i) simulation.data()->qpos[arm.qpos[i]] = angles[i];
    mj_forward(simulation.model(), simulation.data());
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(simulation.data()->site_xpos[3 * arm.tool + i], target.pos[i], 1e-3);
    Frame beyond = target;
    beyond.pos[2] += 2;
    EXPECT_FALSE(kinematics.Solve(arm, beyond, 50, angles));
  }
}

}  // namespace
}  // namespace mjp::app
