// The check at load: it passes where the GPU is right, in every launch and form, and finds a weight
// that is not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/self_check.h"
#include "policy/unet/unet_model.h"

namespace {

using mjp::ExecutionPlan;
using mjp::PolicyOptions;
using testing::HasSubstr;

std::shared_ptr<const mjp::Checkpoint> Shipped() {
  return mjp::LoadCheckpoint(std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image");
}

PolicyOptions Options(int batch = 1, int window = 0) {
  PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  options.batch = batch;
  options.sampler = {mjp::SamplerKind::kDdpm, 100, window, 0.01f, 1};
  return options;
}

class SelfCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  }
  void TearDown() override { unsetenv(mjp::kTestFaultVariable); }
};

class PlantedFaultTest : public SelfCheckTest, public testing::WithParamInterface<const char*> {};

TEST_P(PlantedFaultTest, IsFoundBeforeTheFirstDecision) {
  setenv(mjp::kTestFaultVariable, GetParam(), 1);
  PolicyOptions options = Options();
  try {
    mjp::CreateCudaPolicy(Shipped(), options);
    FAIL() << "a policy with a flipped weight was made";
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("the self-check at load failed"));
  }
  options.self_check = false;
  EXPECT_NE(mjp::CreateCudaPolicy(Shipped(), options), nullptr);
}

TEST_P(PlantedFaultTest, AutoTakesTheCpu) {
  setenv(mjp::kTestFaultVariable, GetParam(), 1);
  PolicyOptions options = Options();
  options.backend = mjp::Backend::kAuto;
  EXPECT_EQ(mjp::Policy::Create(Shipped(), options)->options().backend, mjp::Backend::kCpu);
}

INSTANTIATE_TEST_SUITE_P(Places, PlantedFaultTest, testing::Values("0", ".25", ".5", ".75", ".99"));

TEST_F(SelfCheckTest, WithoutItAFaultIsNotLookedFor) {
  setenv(mjp::kTestFaultVariable, ".5", 1);
  PolicyOptions options = Options();
  options.precision = mjp::Precision::kFp16;
  EXPECT_FALSE(mjp::RunSelfCheck(Shipped(), options).weights_intact);
  unsetenv(mjp::kTestFaultVariable);
  EXPECT_TRUE(mjp::RunSelfCheck(Shipped(), options).Passed());
}

// Rows of each launch are compared, and the fallback of abandoned windows runs.
TEST_F(SelfCheckTest, PassesInEveryFormOfLaunches) {
  const std::pair<int, int> batches_and_windows[] = {{1, 0},   {2, 0},   {33, 0}, {96, 0},
                                                     {128, 0}, {200, 0}, {1, 16}, {2, 16}};
  for (const char* network : {"shipped", "notebook", "lerobot-128"}) {
    const auto checkpoint =
        network == std::string("shipped") ? Shipped() : mjp::NamedNetwork(network);
    for (const auto& [batch, window] : batches_and_windows) {
      PolicyOptions options = Options(batch, window);
      options.precision = mjp::Precision::kFp16;
      const mjp::SelfCheck check = mjp::RunSelfCheck(checkpoint, options);
      const std::string text =
          mjp::ChooseExecution(mjp::UnetOf(*checkpoint).config, options).Text();
      std::printf("    %s, batch %d, %s: %d rows, %.2g in %.0f ms\n", network, batch, text.c_str(),
                  check.rows, check.error, 1e3 * check.seconds);
      EXPECT_EQ(check.rows, std::min(batch, 128));
      EXPECT_TRUE(check.Passed()) << network << ", batch " << batch << ", " << text << ": "
                                  << check.error;
    }
  }
}

TEST_F(SelfCheckTest, AFaultNamesTheBuildAndTheGpu) {
  const mjp::Error error = mjp::SelfCheckFault("the decision: unspecified launch failure",
                                               mjp::GpuTraits::Named("rtx4090"));
  EXPECT_EQ(error.code(), mjp::ExitCode::kEnvironment);
  EXPECT_THAT(error.what(), HasSubstr(mjp::BuiltArchitectures()));
  EXPECT_THAT(error.what(), HasSubstr("NVIDIA RTX 4090 (compute capability 8.9)"));
  EXPECT_THAT(error.what(), HasSubstr(mjp::kBuildForEveryGpu));
}

}  // namespace
