// How a kernel may be launched on which device with which code: without a GPU.

#include <gtest/gtest.h>

#include <string>

#include "kernels/cuda/primitives/launch.cuh"

namespace {

using mjp::GpuTraits;
using mjp::LaunchAttributes;

bool Dependent(const LaunchAttributes& attributes) {
  for (unsigned i = 0; i < attributes.count; ++i)
    if (attributes.values[i].id == cudaLaunchAttributeProgrammaticStreamSerialization) return true;
  return false;
}

mjp::LaunchShape Clusters(int blocks) {
  mjp::LaunchShape shape;
  shape.cluster_z = blocks;
  return shape;
}

// The defect of issue 27: WaitForPredecessor is empty in such code.
TEST(LaunchTest, CodeForLessThan90IsNeverLaunchedBeforeItsPredecessorEnds) {
  for (const std::string& name : GpuTraits::Names()) {
    for (const char* code : {"code=80 wgmma=0", "code=86 wgmma=0", "code=89 wgmma=0"}) {
      const GpuTraits gpu = mjp::OverriddenTraits(GpuTraits::Named(name), code);
      EXPECT_FALSE(Dependent(LaunchAttributes({}, gpu, "kernel"))) << gpu.name;
      EXPECT_THROW(LaunchAttributes(Clusters(2), gpu, "kernel"), mjp::Error) << gpu.name;
    }
  }
}

TEST(LaunchTest, NoOlderDeviceIsAskedForIt) {
  const GpuTraits a100 = mjp::OverriddenTraits(GpuTraits::Named("a100"), "code=90 clusters=8");
  EXPECT_FALSE(Dependent(LaunchAttributes({}, a100, "kernel")));
  EXPECT_THROW(LaunchAttributes(Clusters(2), a100, "kernel"), mjp::Error);
}

TEST(LaunchTest, LargerThanPortableClustersAreAskedFor) {
  const GpuTraits h200 = GpuTraits::Named("h200");
  mjp::LaunchShape shape = Clusters(16);
  EXPECT_THROW(LaunchAttributes(shape, h200, "kernel"), mjp::Error);
  shape.beyond_portable = true;
  EXPECT_EQ(LaunchAttributes(shape, h200, "kernel").values[1].val.clusterDim.z, 16u);
  shape.cluster_z = 17;
  EXPECT_THROW(LaunchAttributes(shape, h200, "kernel"), mjp::Error);
}

TEST(LaunchTest, HopperHasBoth) {
  const GpuTraits h200 = GpuTraits::Named("h200");
  EXPECT_TRUE(Dependent(LaunchAttributes({}, h200, "kernel")));
  const LaunchAttributes attributes(Clusters(8), h200, "kernel");
  EXPECT_TRUE(Dependent(attributes));
  ASSERT_EQ(attributes.count, 2u);
  EXPECT_EQ(attributes.values[1].id, cudaLaunchAttributeClusterDimension);
  EXPECT_EQ(attributes.values[1].val.clusterDim.z, 8u);
}

TEST(LaunchTest, AClusterThatIsTooLargeIsAnErrorThatNamesBoth) {
  try {
    LaunchAttributes(Clusters(16), GpuTraits::Named("h200"), "the kernel");
    FAIL() << "a cluster of 16 was allowed";
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kEnvironment);
    EXPECT_STREQ(error.what(),
                 "the kernel was planned for clusters of 16 blocks, and NVIDIA H200 with this code "
                 "takes 8");
  }
}

}  // namespace
