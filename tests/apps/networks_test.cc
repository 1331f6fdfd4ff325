// The commands with a policy that is no U-Net: each works, or says why not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/program.h"

namespace mjp_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NetworksTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    config_ = SmallActConfig();
    folder_.Write("config.json", mjp::ConfigToJson(*ActCheckpoint(config_)).dump());
    const Outcome made = RunMjpolicy("random-checkpoint --config " + Path("config.json") +
                                     " --formula salt " + Path("act"));
    ASSERT_EQ(made.code, 0) << made.text;
    EXPECT_THAT(made.text, HasSubstr("formula weights"));
  }
  mjp::ActPolicyConfig config_;
};

TEST_F(NetworksTest, InspectAndInferKnowAct) {
  const Outcome inspected = RunMjpolicy("inspect " + Path("act"));
  EXPECT_EQ(inspected.code, 0);
  EXPECT_THAT(inspected.text, AllOf(HasSubstr("type          act"), HasSubstr("ResNet-18"),
                                    HasSubstr("sampler       none: one pass makes a chunk")));
  mjp::SafetensorsWriter observation;
  for (const mjp::CameraFeature& camera : config_.cameras) {
    observation.AddBytes("in/" + camera.name, {camera.height, camera.width, 3},
                         std::vector<uint8_t>(size_t{3} * camera.height * camera.width, 99));
  }
  observation.AddFloats("in/observation.state", {3}, std::vector<float>(3, 0.5f));
  observation.AddFloats("in/observation.environment_state", {2}, std::vector<float>(2, 1));
  observation.Write(Path("in"));
  const std::string infer = "infer --backend cpu --checkpoint " + Path("act") + " --input " +
                            Path("in") + " --out " + Path("out");
  const Outcome inferred = RunMjpolicy(infer);
  ASSERT_EQ(inferred.code, 0) << inferred.text;
  EXPECT_THAT(inferred.text, HasSubstr("1 environment, one pass"));
  const mjp::SafetensorsFile out = mjp::SafetensorsFile::Read(Path("out"));
  EXPECT_EQ(out.Find("out/action_full")->shape, (std::vector<int64_t>{1, 6, 3}));
  EXPECT_EQ(out.Find("out/action_chunk")->shape, (std::vector<int64_t>{1, 4, 3}));
  EXPECT_EQ(out.Find("out/encoder_out")->shape, (std::vector<int64_t>{3 + 2 * 6, 1, 24}));
  EXPECT_EQ(out.Find("out/x_steps"), nullptr);
  const Outcome refused = RunMjpolicy(infer + " --sampler ddim");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, HasSubstr("sampler: a policy of type act makes its chunk in one pass"));
}

// LeRobot's own default: a ResNet-18 with BatchNorm.
TEST_F(NetworksTest, RandomCheckpointWritesABatchNorm) {
  mjp::UnetPolicyConfig config = mjp::NamedConfig("lerobot");
  config.unet.down_dims = {8, 16};
  mjp::NormalizerStats stats;
  stats.cameras.resize(1);
  stats.state = stats.action = {mjp::Normalization::kMinMax, {0, 0}, {512, 512}};
  mjp::Json json = mjp::ConfigToJson(*mjp::RandomCheckpoint(config, stats, 0));
  json["use_group_norm"] = false;
  folder_.Write("batch_norm.json", json.dump());
  for (const char* weights : {"--seed 3 ", "--formula salt "}) {
    const Outcome made = RunMjpolicy("random-checkpoint --force --config " +
                                     Path("batch_norm.json ") + weights + Path("batch_norm"));
    ASSERT_EQ(made.code, 0) << made.text;
    const Outcome inspected = RunMjpolicy("inspect " + Path("batch_norm"));
    EXPECT_EQ(inspected.code, 0);
    EXPECT_THAT(inspected.text, HasSubstr("ResNet-18, BatchNorm (folded)"));
  }
}

TEST_F(NetworksTest, BenchTimesWhatThereIs) {
  const Outcome outcome =
      RunMjpolicy("bench pass chunk parallel decision --decisions 2 --seconds 0.01 " +
                  std::string("--backend cpu --checkpoint ") + Path("act"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("this policy has no U-Net"),
                                  HasSubstr("one pass makes this policy's chunk"),
                                  HasSubstr("encode"), HasSubstr("1 passes per decision")));
}

TEST_F(NetworksTest, RunsOnAGpuOrSaysWhyNot) {
  const Outcome outcome =
      RunMjpolicy("bench decision --decisions 2 --backend cuda --checkpoint " + Path("act"));
  if (outcome.code == 0) {
    EXPECT_THAT(outcome.text, HasSubstr("a launch for each layer"));
  } else {
    EXPECT_EQ(outcome.code, 3);
    EXPECT_THAT(outcome.text, HasSubstr("backend cuda: "));
  }
}

TEST_F(NetworksTest, OtherInputsThanThePolicysAreNamed) {
  mjp::SafetensorsWriter observation;
  observation.AddFloats("in/observation.state", {3}, std::vector<float>(3, 0.5f));
  observation.AddFloats("in/x_T", {6, 3}, std::vector<float>(18, 0.5f));
  observation.Write(Path("in"));
  const Outcome outcome = RunMjpolicy("infer --backend cpu --checkpoint " + Path("act") +
                                      " --input " + Path("in") + " --out " + Path("out"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("lacks in/frames_u8"));
}

}  // namespace
}  // namespace mjp_test
