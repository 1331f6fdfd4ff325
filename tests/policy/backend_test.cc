#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/policy.h"

#ifdef MJPOLICY_HAVE_CUDA
#include "policy/cuda/cuda_policy.h"
#endif

namespace {

// A policy whose pictures are resized, which only the CPU backend does.
std::shared_ptr<const mjp::Checkpoint> ResizingCheckpoint() {
  mjp::UnetPolicyConfig config = mjp::NamedConfig("compact");
  config.encoder.resize_height = config.encoder.resize_width = 64;
  config.encoder.crop_height = config.encoder.crop_width = 56;
  config.unet.down_dims = {16, 32};
  mjp::NormalizerStats stats;
  stats.cameras = {{mjp::Normalization::kIdentity, {}, {}}};
  return mjp::RandomCheckpoint(config, stats, 3);
}

#ifdef MJPOLICY_HAVE_CUDA

TEST(BackendTest, AutoTakesTheCpuWhereTheGpuCannotAndSaysWhyOnce) {
  std::string why;
  if (mjp::CudaUsable(&why)) why = "resize";
  mjp::PolicyOptions options;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(mjp::Policy::Create(ResizingCheckpoint(), options)->options().backend,
              mjp::Backend::kCpu);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(why), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

TEST(BackendTest, GpuAskedForByNameIsNotReplaced) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  std::string why;
  const bool usable = mjp::CudaUsable(&why);
  try {
    mjp::Policy::Create(ResizingCheckpoint(), options);
    FAIL() << "a policy was made";
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), usable ? mjp::ExitCode::kBadInput : mjp::ExitCode::kEnvironment);
  }
}

#else

TEST(BackendTest, WithoutCudaAutoIsTheCpu) {
  EXPECT_EQ(mjp::Policy::Create(ResizingCheckpoint(), {})->options().backend, mjp::Backend::kCpu);
}

#endif

}  // namespace
