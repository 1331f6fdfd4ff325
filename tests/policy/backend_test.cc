#include <gtest/gtest.h>

#include <string>

#include "kernels/error.h"
#include "policy/policy.h"
#include "policy/random_checkpoint.h"

#ifdef PUSHT_HAVE_CUDA
#include "policy/cuda/cuda_policy.h"
#endif

namespace {

// A policy whose pictures are resized, which only the CPU backend does.
std::shared_ptr<const dp::Checkpoint> ResizingCheckpoint() {
  dp::PolicyConfig config = dp::NamedConfig("compact");
  config.encoder.resize_height = config.encoder.resize_width = 64;
  config.encoder.crop_height = config.encoder.crop_width = 56;
  config.unet.down_dims = {16, 32};
  dp::NormalizerStats stats;
  stats.cameras = {{dp::Normalization::kIdentity, {}, {}}};
  return dp::RandomCheckpoint(config, stats, 3);
}

#ifdef PUSHT_HAVE_CUDA

TEST(BackendTest, AutoTakesTheCpuWhereTheGpuCannotAndSaysWhyOnce) {
  std::string why;
  if (dp::CudaUsable(&why)) why = "resize";
  dp::PolicyOptions options;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(dp::Policy::Create(ResizingCheckpoint(), options)->options().backend,
              dp::Backend::kCpu);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(why), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

TEST(BackendTest, GpuAskedForByNameIsNotReplaced) {
  dp::PolicyOptions options;
  options.backend = dp::Backend::kCuda;
  std::string why;
  const bool usable = dp::CudaUsable(&why);
  try {
    dp::Policy::Create(ResizingCheckpoint(), options);
    FAIL() << "a policy was made";
  } catch (const dp::Error& error) {
    EXPECT_EQ(error.code(), usable ? dp::ExitCode::kBadInput : dp::ExitCode::kEnvironment);
  }
}

#else

TEST(BackendTest, WithoutCudaAutoIsTheCpu) {
  EXPECT_EQ(dp::Policy::Create(ResizingCheckpoint(), {})->options().backend, dp::Backend::kCpu);
}

#endif

}  // namespace
