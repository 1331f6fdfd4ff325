// A task file goes all the way by commands: check, record, train, evaluate
// (docs/tutorials/4-your-task.md).

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "tests/support/program.h"
#include "tests/support/renderer.h"

namespace mjp::app {
namespace {

using mjp_test::Outcome;
using mjp_test::RunMjpolicy;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TaskTest, IsCheckedRecordedTrainedAndScored) {
  if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  const mjp_test::TempDir folder;
  const std::string cart = std::string(MJPOLICY_SOURCE_DIR) + "/models/cart_pole.xml ";
  const std::string data = folder / "data", run = folder / "run", checkpoint = run + "/checkpoint";
  Outcome outcome = RunMjpolicy("record " + cart + "--out " + data +
                                " --episodes 3 --picture 64x48 --samples 32");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("saved 3 of 3 episodes"));
  const std::string train =
      std::string(MJPOLICY_TRAIN_PROGRAM) + " --dataset " + data + " --out " + run +
      " --device cpu --threads 1 --batch 8 --draws 4 --warmup 20 "
      "--average-decay 0.98 --learning-rate 0.002 --prediction sample --validation 0.34 "
      "--horizon 8 --unet-channels 32 64 --stage-channels 32 32 --stem-channels 16 --task " +
      cart + "--evaluate-every 1 --evaluate-episodes 2 ";
  outcome = mjp_test::Run(train + "--log-every 50 --steps 100");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("step 100  100.0 %"), HasSubstr("held out"),
                                  HasSubstr("scored at step 100: success ")));
  const std::string scores = mjp_test::ReadText(run + "/scores.csv");
  EXPECT_THAT(scores,
              AllOf(HasSubstr("step,seconds,episodes,success,reward\n"), HasSubstr("\n100,")));
  // without its last score a training is not complete
  const std::string longer = train + "--log-every 2 --steps 102";
  const std::string pid = run + "/pid";
  outcome = mjp_test::Run("{ (" + longer + " & echo $! > " + pid + "; wait $!; echo ended $?) | " +
                          "while read -r line; do echo \"$line\"; case \"$line\" in " +
                          "*100.0\\ %*) kill $(cat " + pid + ");; esac; done; }");
  EXPECT_THAT(outcome.text, HasSubstr("ended 143"));
  outcome = mjp_test::Run(longer);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("scored at step 102: success "));
  // the file's units are those of the data that it was recorded with
  outcome =
      RunMjpolicy("check " + cart + "--checkpoint " + checkpoint + " --out " + (folder / "check"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("64 x 48"));
  outcome = RunMjpolicy("evaluate " + cart + "--checkpoint " + checkpoint +
                        " --backend cpu --sampler "
                        "ddim --steps 5 --episodes 2 --max-steps 10 --out " +
                        (folder / "results"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("of 2, 95 % interval"));
}

// before the run has a folder
TEST(TrainOptionsTest, NumbersOutsideTheirRangeAreRefusedByName) {
  const mjp_test::TempDir folder;
  const std::string run = folder.path() + "/run";
  for (const std::string odd :
       {"--unet-channels 1000000", "--unet-channels 64 -8", "--unet-channels 0",
        "--stage-channels 1000000", "--stem-channels 2147483647", "--stem-channels 0",
        "--action-steps 0", "--action-steps 1000000", "--batch 0", "--draws nan", "--warmup nan",
        "--average-decay nan", "--learning-rate inf", "--gpus 0", "--steps 1e10", "--seed -1"}) {
    const auto outcome = mjp_test::Run(std::string(MJPOLICY_TRAIN_PROGRAM) +
                                       " --demonstrate 64 --device cpu --out " + run + " " + odd);
    EXPECT_EQ(outcome.code, 1) << odd << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(odd.substr(0, odd.find(' ')))) << odd;
    EXPECT_THAT(outcome.text, testing::Not(HasSubstr("frame #"))) << odd;
    EXPECT_FALSE(std::filesystem::exists(run)) << odd;
  }
}

}  // namespace
}  // namespace mjp::app
