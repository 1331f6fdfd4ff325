// What each build does on each GPU: it runs what both have, or says why not. On a CUDA runtime
// that needs no GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/primitives/gpu_probe.h"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/execution_plan.h"
#include "policy/dit/dit_config.h"
#include "policy/policy.h"
#include "policy/unet/unet_model.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/gpu/fake_cuda.h"
#include "tests/support/gpu/observations.h"

namespace mjp_test {
namespace {

using mjp::Format;
using mjp::GpuTraits;
using testing::HasSubstr;

// Makes `gpu` the one that the program finds, as a device that it has not seen.
void Find(FakeGpu gpu) {
  static int devices = 0;
  gpu.device = ++devices;
  TheFakeGpu() = gpu;
}

struct Pair {
  const char* name;
  FakeGpu gpu;
  bool dependent_launch, wgmma;
  int cluster_blocks;
  const char *shipped,
      *large;            // forms of the shipped policy and of "notebook", one environment, fp16
  bool sequence_kernel;  // takes a transformer of width 256
};

FakeGpu Gpu(int capability, int multiprocessors, int shared_kib, int code, bool wgmma = false) {
  FakeGpu gpu;
  gpu.capability = capability, gpu.multiprocessors = multiprocessors;
  gpu.shared_kib = shared_kib, gpu.code = code, gpu.code_wgmma = wgmma;
  return gpu;
}

FakeGpu H200WithClusters(int multiprocessors) {
  FakeGpu gpu = Gpu(90, 132, 227, 90, true);
  gpu.multiprocessors_in_clusters = multiprocessors;
  return gpu;
}

constexpr char kLayers[] = "launch per layer", kRowKernel[] = "row kernel",
               kAcrossClusters[] = "row kernel across clusters",
               kPortable[] = "megakernel, portable", kHopper[] = "megakernel, warp-specialised";

const Pair kPairs[] = {
    {"90a on an H200", Gpu(90, 132, 227, 90, true), true, true, 8, kRowKernel, kAcrossClusters,
     true},
    {"90a on an H100 PCIe", Gpu(90, 114, 227, 90, true), true, true, 8, kRowKernel, kAcrossClusters,
     true},
    {"90 on an H200", Gpu(90, 132, 227, 90), true, false, 8, kRowKernel, kAcrossClusters, true},
    {"PTX of 80 on an H200", Gpu(90, 132, 227, 80), false, false, 1, kRowKernel, kPortable, false},
    {"100 on a B200", Gpu(100, 148, 227, 100), true, false, 8, kRowKernel, kAcrossClusters, true},
    {"80 on an A100", Gpu(80, 108, 163, 80), false, false, 1, kRowKernel, kPortable, false},
    {"80 on an RTX 3090", Gpu(86, 82, 99, 80), false, false, 1, kRowKernel, kPortable, false},
    {"89 on an RTX 4090", Gpu(89, 128, 99, 89), false, false, 1, kRowKernel, kPortable, false},
    {"86 on an RTX 4090", Gpu(89, 128, 99, 86), false, false, 1, kRowKernel, kPortable, false},
    {"PTX of 80 on an RTX 5090", Gpu(120, 170, 99, 80), false, false, 1, kRowKernel, kPortable,
     false},
    {"90a on an H200 with room for seven clusters of eight", H200WithClusters(56), true, true, 8,
     kRowKernel, kHopper, true},
    {"90a on an H200 without room for a cluster", H200WithClusters(0), true, false, 1, kRowKernel,
     kPortable, false},
    {"87 on an Orin Nano", Gpu(87, 8, 163, 87), false, false, 1, kRowKernel, kLayers, false},
};

std::string FormOf(const mjp::UnetPolicyConfig& config, const GpuTraits& gpu) {
  return mjp::ChooseExecution(config, {Format::kFp16, 1}, gpu).FormName();
}

TEST(BuildsAndGpusTest, WhatRunsIsWhatBothHave) {
  const auto checkpoint = mjp::LoadCheckpoint(MJPOLICY_SOURCE_DIR "/assets/pusht_image");
  const mjp::UnetPolicyConfig& shipped = mjp::UnetOf(*checkpoint).config;
  mjp::DitConfig dit;
  dit.hidden = 256, dit.heads = 8, dit.layers = 2, dit.horizon = 16, dit.action_dim = 2;
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(pair.name);
    Find(pair.gpu);
    const GpuTraits& gpu = GpuTraits::Current();
    EXPECT_EQ(gpu.capability, pair.gpu.capability);
    EXPECT_EQ(gpu.code, pair.gpu.code);
    EXPECT_EQ(gpu.multiprocessors, pair.gpu.multiprocessors);
    EXPECT_EQ(gpu.shared_bytes, pair.gpu.shared_kib * 1024);
    EXPECT_EQ(gpu.DependentLaunch(), pair.dependent_launch);
    EXPECT_EQ(gpu.Wgmma(), pair.wgmma);
    EXPECT_EQ(gpu.ClusterBlocks(), pair.cluster_blocks);
    EXPECT_EQ(FormOf(shipped, gpu), pair.shipped);
    EXPECT_EQ(FormOf(mjp::NamedConfig("notebook"), gpu), pair.large);
    EXPECT_EQ(mjp::ChooseDitExecution(dit, {Format::kFp16, 1}, gpu).form != mjp::DitForm::kLaunches,
              pair.sequence_kernel);
  }
}

// A network and the way in which it is sampled.
struct Work {
  const char* name;
  std::shared_ptr<const mjp::Checkpoint> checkpoint;
  mjp::SamplerOptions sampler;
  int batch = 1;
  mjp::Precision precision = mjp::Precision::kFp16;
};

// No kernel is given more shared memory than a block of the GPU may have.
TEST(BuildsAndGpusTest, PoliciesAskForWhatTheGpuHas) {
  using enum mjp::SamplerKind;
  const auto shipped = mjp::LoadCheckpoint(MJPOLICY_SOURCE_DIR "/assets/pusht_image"),
             large = mjp::NamedNetwork("lerobot-128"), act = ActCheckpoint(SmallActConfig()),
             dit = std::shared_ptr<const mjp::Checkpoint>(SmallDit(SmallDitConfig(true)));
  const Work all[] = {{"shipped", shipped, {kDdim, 10}},
                      {"shipped, windows", shipped, {kDdpm, 100, mjp::kAutoWindow}},
                      {"shipped, many", shipped, {kDdim, 10}, 64},
                      {"128/256/512, windows", large, {kDdpm, 20, mjp::kAutoWindow}},
                      {"128/256/512, many", large, {kDdim, 2}, 64},
                      {"ACT", act, {}},
                      {"DiT", dit, {}},
                      {"DiT, windows", dit, {kDdpm, 20, 8}},
                      {"shipped, bf16", shipped, {kDdim, 10}, 1, mjp::Precision::kBf16},
                      {"shipped, tf32", shipped, {kDdim, 10}, 1, mjp::Precision::kTf32},
                      {"shipped, fp32", shipped, {kDdpm, 20, 16}, 1, mjp::Precision::kFp32},
                      {"128/256/512, tf32", large, {kDdim, 2}, 64, mjp::Precision::kTf32},
                      {"128/256/512, fp32", large, {kDdim, 2}, 1, mjp::Precision::kFp32},
                      {"ACT, tf32", act, {}, 2, mjp::Precision::kTf32},
                      {"ACT, fp32", act, {}, 1, mjp::Precision::kFp32},
                      {"DiT, bf16", dit, {}, 2, mjp::Precision::kBf16},
                      {"DiT, fp32", dit, {}, 1, mjp::Precision::kFp32}};
  for (const Pair& pair : kPairs) {
    Find(pair.gpu);
    for (const Work& work : all) {
      mjp::PolicyOptions options;
      options.backend = mjp::Backend::kCuda;
      options.precision = work.precision;
      options.self_check = false;  // no kernel runs
      options.sampler = work.sampler;
      options.batch = work.batch;
      const Observations observations(*work.checkpoint, work.batch);
      mjp::PolicyOutput output;
      EXPECT_NO_THROW(
          mjp::Policy::Create(work.checkpoint, options)->Infer(observations.input, output))
          << work.name << ", " << pair.name;
    }
  }
}

// A host's threads have devices of their own; a policy decides on the GPU that it was made for.
TEST(BuildsAndGpusTest, APolicyStaysOnItsGpu) {
  Find(FakeGpu());
  const int first = TheFakeGpu().device, second = first + 1000;
  const auto checkpoint = mjp::LoadCheckpoint(MJPOLICY_SOURCE_DIR "/assets/pusht_image");
  const Observations observations(*checkpoint, 1);
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  options.self_check = false;  // no kernel runs
  const auto policy = mjp::Policy::Create(checkpoint, options);
  const auto weights = [&] { return mjp::DeviceWeights::Get(checkpoint, Format::kFp16, true); };
  const auto of_first = weights();
  std::thread([&] {
    ASSERT_EQ(cudaSetDevice(second), cudaSuccess);
    mjp::PolicyOutput output;
    EXPECT_NO_THROW(policy->Infer(observations.input, output));
    EXPECT_EQ(mjp::CurrentDevice(), second);
    EXPECT_NE(weights(), of_first);
    const auto other = mjp::Policy::Create(checkpoint, options);
    EXPECT_EQ(other->device_ordinal(), second);
    EXPECT_NO_THROW(other->Infer(observations.input, output));
    options.device = first;
    EXPECT_EQ(mjp::Policy::Create(checkpoint, options)->device_ordinal(), first);
  }).join();
  EXPECT_EQ(policy->device_ordinal(), first);
  EXPECT_EQ(weights(), of_first);
}

struct Refused {
  const char* name;
  FakeGpu gpu;
  std::string why;
};

std::vector<Refused> RefusedPairs() {
  std::vector<Refused> pairs;
  const std::string build = std::string("this build has code for ") + mjp::BuiltArchitectures();
  const auto add = [&](const char* name, const FakeGpu& gpu, const std::string& why) {
    pairs.push_back({name, gpu, why});
  };
  FakeGpu old = Gpu(75, 68, 64, 75);
  const std::string oldest =
      "a fake GPU (compute capability 7.5) is older than 8.0, the oldest that this program runs on";
  add("code of an older build", old, oldest);
  old.code_status = cudaErrorNoKernelImageForDevice;
  add("an older GPU", old, oldest);
  for (const cudaError_t status : {cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction,
                                   cudaErrorUnsupportedPtxVersion, cudaErrorJitCompilerNotFound}) {
    FakeGpu gpu = Gpu(86, 82, 99, 90);
    gpu.code_status = status;
    add("no code for it", gpu,
        build + " and none for a fake GPU (compute capability 8.6); to build for it, run: " +
            mjp::kBuildForEveryGpu);
  }
  FakeGpu absent;
  absent.count_status = cudaErrorNoDevice;
  add("no GPU", absent, "no NVIDIA GPU found");
  absent.count_status = cudaErrorInsufficientDriver;
  absent.driver = 12040;
  add("an old driver", absent, "the NVIDIA driver is for CUDA 12.4 and this build needs ");
  absent.driver = 0;
  add("no driver", absent, "no NVIDIA driver found");
  return pairs;
}

std::unique_ptr<mjp::Policy> Create(mjp::Backend backend) {
  static const auto checkpoint = [] {
    mjp::UnetPolicyConfig config;
    config.type = "diffusion";
    config.state_dim = config.action_dim = 2;
    config.environment_dim = 5;
    config.unet.down_dims = {16, 32};
    config.unet.step_embed_dim = 16;
    return mjp::RandomCheckpoint(config, {}, 3);
  }();
  mjp::PolicyOptions options;
  options.backend = backend;
  return mjp::Policy::Create(checkpoint, options);
}

TEST(BuildsAndGpusTest, WhatCannotRunIsTheCpuOrRefused) {
  std::set<std::string> causes;
  for (const Refused& pair : RefusedPairs()) {
    SCOPED_TRACE(pair.name);
    Find(pair.gpu);
    std::string why;
    EXPECT_FALSE(mjp::CudaUsable(&why));
    EXPECT_THAT(why, testing::StartsWith(pair.why));
    testing::internal::CaptureStderr();
    EXPECT_EQ(Create(mjp::Backend::kAuto)->options().backend, mjp::Backend::kCpu);
    const std::string said = testing::internal::GetCapturedStderr();
    // once for each cause
    EXPECT_EQ(said, causes.insert(why).second ? why + ": running on the CPU\n" : "");
    try {
      Create(mjp::Backend::kCuda);
      ADD_FAILURE() << "a policy was made";
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kEnvironment);
      EXPECT_EQ(std::string(error.what()),
                "backend cuda: " + why + "; choose the backend cpu or auto");
    }
  }
}

// Another try may find what does not answer.
TEST(BuildsAndGpusTest, AGpuThatDoesNotAnswerIsAskedAgain) {
  FakeGpu gpu;
  gpu.count_status = cudaErrorLaunchFailure;
  Find(gpu);
  std::string why;
  EXPECT_FALSE(mjp::CudaUsable(&why));
  EXPECT_THAT(why, HasSubstr("the NVIDIA GPU does not answer"));
  TheFakeGpu().count_status = cudaSuccess;
  EXPECT_TRUE(mjp::CudaUsable(&why)) << why;
}

}  // namespace
}  // namespace mjp_test
