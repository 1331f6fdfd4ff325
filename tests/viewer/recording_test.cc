// A person records in the viewer: the program as it is used, without a display, and killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "datasets/check.h"
#include "datasets/dataset.h"
#include "tests/support/program.h"
#include "tests/support/renderer.h"

namespace mjp_test {
namespace {

using mjp::datasets::Check;
using mjp::datasets::Dataset;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kArm = MJPOLICY_SOURCE_DIR "/models/arm_lift.xml";

class RecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  }
  std::string Command(const std::string& lines) const {
    folder_.Write("script.txt", "speed 0\n" + lines);
    return "cd " + folder_.path() + " && exec " MJPOLICY_VIEWER " " + kArm +
           " --record data --picture 64x48 --script script.txt";
  }
  TempDir folder_;
};

TEST_F(RecordingTest, KeepsWhatIsKeptAndNothingElse) {
  const Outcome outcome =
      mjp_test::Run(Command("episode start\ndrive 1 0 -1 0\nrun 12\ndrive 0 0 0 -1\n"
                            "run 15\nseek 5\nrun 8\nepisode keep\nepisode start\nrun 6\n"
                            "episode discard\nepisode skip\nepisode start\nrun 4\n"
                            "episode keep\nsaved\nepisode start\nrun 3\n"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("data set data: 2 episodes"));
  Dataset dataset(folder_ / "data");
  EXPECT_THAT(Check(dataset, {}).problems, IsEmpty());
  ASSERT_EQ(dataset.episodes().size(), 2u);
  const auto frames = [&](size_t i) {
    return dataset.Read(i, *dataset.info().Find("seed")).values.ints;
  };
  EXPECT_THAT(frames(0), testing::ElementsAreArray(std::vector<int64_t>(8, 0)));
  EXPECT_THAT(frames(1), testing::ElementsAreArray(std::vector<int64_t>(4, 2)));
}

TEST_F(RecordingTest, AMocapBodyIsDragged) {
  const std::string model = folder_.Write(
      "flag.xml", "<mujoco><include file=\"" + kArm +
                      "\"/><worldbody><body name=\"flag\" mocap=\"true\" pos=\"0 0.5 0.5\"><geom "
                      "type=\"box\" size=\".01 .01 .1\"/></body></worldbody></mujoco>");
  folder_.Write(
      "script.txt",
      "speed 0\nepisode target\nepisode start\nrun 3\ndrag 0.1 0 0\nrun 6\nepisode keep\nsaved\n");
  const Outcome outcome =
      mjp_test::Run("cd " + folder_.path() + " && exec " MJPOLICY_VIEWER " " + model +
                    " --record data --picture 64x48 --script script.txt");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("data set data: 1 episodes"));
  Dataset dataset(folder_ / "data");
  EXPECT_THAT(Check(dataset, {}).problems, IsEmpty());
  ASSERT_EQ(dataset.episodes().size(), 1u);
  EXPECT_EQ(dataset.episodes()[0].length, 6);
}

TEST_F(RecordingTest, KilledItHasWhatItSaid) {
  std::string lines;
  for (int episode = 0; episode < 50; ++episode) {
    lines += "episode start\nrun 5\nepisode keep\nsaved\n";
  }
  size_t before = 0;
  for (int round = 1; round <= 3; ++round) {
    // of its own: an old one would be read before the shell has emptied it
    const std::string log = folder_ / ("log" + std::to_string(round));
    const Outcome killed = mjp_test::Run(
        "(" + Command(lines) + ") > " + log + " 2>&1 & while kill -0 $! && [ $(cat " + log +
        " 2>/dev/null | grep -c kept) -lt " + std::to_string(round) +
        " ]; do sleep 0.01; done; sleep 0.0" + std::to_string(2 * round) + "; kill -9 $!; wait $!");
    EXPECT_EQ(killed.code, 137) << killed.text << ReadText(log);
    ASSERT_EQ(RunMjpolicy("dataset " + (folder_ / "data") + " --finish").code, 0);
    Dataset dataset(folder_ / "data");
    EXPECT_THAT(Check(dataset, {}).problems, IsEmpty());
    EXPECT_GE(dataset.episodes().size(), before + round);
    before = dataset.episodes().size();
  }
}

TEST_F(RecordingTest, WrongCommandsAreExplained) {
  Outcome outcome = mjp_test::Run(MJPOLICY_VIEWER " --record data");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("--record needs a task file"));
  outcome = mjp_test::Run(MJPOLICY_VIEWER " " + kArm + " --hand grip");
  EXPECT_EQ(outcome.code, 1);
  outcome = mjp_test::Run("cd " + folder_.path() + " && " MJPOLICY_VIEWER " " + kArm +
                          " --record data --hand thumb --script bench");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("no site or body of that name"));
}

}  // namespace
}  // namespace mjp_test
