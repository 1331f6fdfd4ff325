#include "kernels/cuda/primitives/gpu_traits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace {

using mjp::GpuTraits;
using testing::HasSubstr;

// PTX for 8.0, compiled by the driver for an H200.
GpuTraits OldCodeOnHopper() {
  GpuTraits traits = GpuTraits::Named("h200");
  traits.code = 80, traits.code_wgmma = false;
  return traits;
}

TEST(GpuTraitsTest, OldCodeOnANewDeviceHasNothingThatItWasNotCompiledFor) {
  const GpuTraits traits = OldCodeOnHopper();
  EXPECT_FALSE(traits.DependentLaunch());
  EXPECT_FALSE(traits.Wgmma());
  EXPECT_EQ(traits.ClusterBlocks(), 1);
}

TEST(GpuTraitsTest, NewCodeBelievedToBeOnAnOldDeviceHasNothingThatTheDeviceLacks) {
  const GpuTraits traits =
      mjp::OverriddenTraits(GpuTraits::Named("h200"), "capability=80 shared=99 sms=82");
  EXPECT_FALSE(traits.DependentLaunch());
  EXPECT_FALSE(traits.Wgmma());
  EXPECT_EQ(traits.ClusterBlocks(), 1);
  EXPECT_EQ(traits.shared_bytes, 99 * 1024);
  EXPECT_EQ(traits.multiprocessors, 82);
  EXPECT_THAT(traits.name, HasSubstr("overridden"));
}

TEST(GpuTraitsTest, OnlyADataCentresGpuHasClustersOf16) {
  EXPECT_EQ(GpuTraits::Named("a100").LargestCluster(), 1);
  EXPECT_EQ(GpuTraits::Named("h100").LargestCluster(), 16);
  EXPECT_EQ(GpuTraits::Named("b200").LargestCluster(), 16);
  EXPECT_EQ(mjp::OverriddenTraits(GpuTraits::Named("h200"), "clusters=4").LargestCluster(), 4);
  EXPECT_EQ(OldCodeOnHopper().LargestCluster(), 1);
  GpuTraits consumer = GpuTraits::Named("b200");
  consumer.capability = 120;
  EXPECT_EQ(consumer.LargestCluster(), 8);
}

TEST(GpuTraitsTest, HopperHasAll) {
  const GpuTraits traits = GpuTraits::Named("h200");
  EXPECT_TRUE(traits.DependentLaunch());
  EXPECT_TRUE(traits.Wgmma());
  EXPECT_EQ(traits.ClusterBlocks(), 8);
}

TEST(GpuTraitsTest, HopperCodeWithoutItsOwnInstructionsHasNoWarpgroupProducts) {
  GpuTraits traits = GpuTraits::Named("h200");
  traits.code_wgmma = false;  // sm_90
  EXPECT_FALSE(traits.Wgmma());
  EXPECT_TRUE(traits.DependentLaunch());
  traits = GpuTraits::Named("b200");
  traits.code_wgmma = true;  // no such code runs there
  EXPECT_FALSE(traits.Wgmma());
}

TEST(GpuTraitsTest, UnknownNamesAndFieldsAreErrors) {
  EXPECT_THROW(GpuTraits::Named("h300"), mjp::Error);
  for (const char* text : {"smss=8", "sms", "sms=", "sms=-1", "sms=8x", "=8"})
    EXPECT_THROW(mjp::OverriddenTraits({}, text), mjp::Error) << text;
}

// Why an A100 is refused that has another capability and code; empty where it is not.
std::string Refusal(int capability, int code) {
  GpuTraits traits = GpuTraits::Named("a100");
  traits.capability = capability, traits.code = code;
  try {
    mjp::CheckRuns(traits);
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kEnvironment);
    return error.what();
  }
  return "";
}

TEST(GpuTraitsTest, OldGpusAndGpusWithoutCodeAreRefusedByName) {
  EXPECT_EQ(Refusal(80, 80), "");
  EXPECT_EQ(Refusal(75, 80),
            "NVIDIA A100 (compute capability 7.5) is older than 8.0, the oldest that this program "
            "runs on");
  EXPECT_EQ(Refusal(80, 0), std::string("this build has code for ") + mjp::BuiltArchitectures() +
                                " and none for NVIDIA A100 (compute capability 8.0); to build "
                                "for it, run: scripts/build release");
}

TEST(GpuTraitsTest, EveryKnownGpuIsOneThatTheProgramRunsOn) {
  for (const std::string& name : GpuTraits::Names()) {
    const GpuTraits traits = GpuTraits::Named(name);
    EXPECT_GE(traits.capability, 80) << name;
    EXPECT_GE(traits.multiprocessors, 8) << name;
    EXPECT_GE(traits.shared_bytes, 99 * 1024) << name;
  }
}

#ifndef MJPOLICY_TEST_SEAMS

TEST(GpuTraitsTest, OnlyABuildForTestsObeysTheirVariables) {
  for (const char* name : {"MJPOLICY_TEST_GPU", mjp::kTestFaultVariable}) {
    setenv(name, "0.5", 1);
    try {
      GpuTraits::Current();
      ADD_FAILURE() << name << " was ignored";
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kEnvironment);
      EXPECT_THAT(error.what(), HasSubstr(std::string(name) + " is set"));
    }
    unsetenv(name);
  }
}

#endif

}  // namespace
