// A policy on a GPU that is not the thread's: it decides there as on any other, and the thread's
// GPU stays what it was. Without a second GPU the tests skip.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/primitives/gpu_probe.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/policy.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/gpu/observations.h"

namespace mjp_test {
namespace {

class TwoGpusTest : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2)
      GTEST_SKIP() << "two GPUs are needed";
    cudaDeviceProp first = {}, second = {};
    ASSERT_EQ(cudaGetDeviceProperties(&first, 0), cudaSuccess);
    ASSERT_EQ(cudaGetDeviceProperties(&second, 1), cudaSuccess);
    same_model_ = std::string(first.name) == second.name;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  }

  bool same_model_ = false;
};

std::vector<std::shared_ptr<const mjp::Checkpoint>> Networks() {
  mjp::DitConfig dit = SmallDitConfig(true);
  dit.hidden = 256, dit.heads = 8;
  return {mjp::LoadCheckpoint(MJPOLICY_SOURCE_DIR "/assets/pusht_image"),
          mjp::NamedNetwork("lerobot-128"), mjp::NamedNetwork("notebook"), SmallDit(dit),
          ActCheckpoint(SmallActConfig())};
}

// With the self-check, which runs on the policy's GPU, too.
std::unique_ptr<mjp::Policy> PolicyOn(int device, std::shared_ptr<const mjp::Checkpoint> checkpoint,
                                      int batch) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  options.batch = batch;
  options.device = device;
  return mjp::Policy::Create(std::move(checkpoint), options);
}

std::vector<float> Decide(mjp::Policy& policy, const Observations& observations) {
  mjp::PolicyOutput output;
  policy.Infer(observations.input, output);
  return output.actions;
}

TEST_F(TwoGpusTest, APolicyDecidesOnItsGpuWhateverTheThreads) {
  for (const auto& checkpoint : Networks()) {
    const Observations observations(*checkpoint, 2);
    const auto here = PolicyOn(0, checkpoint, 2), there = PolicyOn(1, checkpoint, 2);
    SCOPED_TRACE(there->Description());
    EXPECT_EQ(there->device_ordinal(), 1);
    EXPECT_EQ(mjp::CurrentDevice(), 0);
    const std::vector<float> expected = Decide(*here, observations);
    EXPECT_EQ(Decide(*there, observations).size(), expected.size());
    EXPECT_EQ(mjp::CurrentDevice(), 0);
    if (same_model_) {
      EXPECT_EQ(Decide(*there, observations), expected);
    }
  }
}

TEST_F(TwoGpusTest, PoliciesOfBothDecideAtOnce) {
  constexpr int kDecisions = 30;
  for (const auto& checkpoint : Networks()) {
    std::vector<std::thread> threads;
    for (const int device : {0, 1, 0, 1})
      threads.emplace_back([&checkpoint, device] {
        const Observations observations(*checkpoint, 1);
        const auto policy = PolicyOn(device, checkpoint, 1);
        const std::vector<float> first = Decide(*policy, observations);
        for (int i = 1; i < kDecisions; ++i) ASSERT_EQ(Decide(*policy, observations), first);
        EXPECT_EQ(mjp::CurrentDevice(), 0) << "a new thread's";
      });
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace mjp_test
