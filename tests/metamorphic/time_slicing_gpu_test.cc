// Decisions and pictures while other processes use the same GPU. It switches between processes in
// the middle of a kernel, so that some warps and CTAs are milliseconds behind others: a race that
// hardly ever shows alone shows here.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "image_diffusion/sampler.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/cuda_policy.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/gpu/observations.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kBegun = '\1';

// Something that runs on the GPU, and gives the same each time.
struct Work {
  std::string description;
  std::function<std::vector<float>()> run;
};

// Decisions of `batch` environments. A window that no rounding meets is abandoned, and the chain
// goes on step by step.
Work Decisions(std::shared_ptr<const mjp::Checkpoint> checkpoint, int batch = 1, int window = 0) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  options.precision = mjp::Precision::kFp16;
  options.self_check = false;  // the test is the check
  if (!checkpoint->network->sampler().kinds.empty()) {
    options.sampler = {mjp::SamplerKind::kDdpm, 100, window};
    options.sampler.parallel_tolerance = 1e-9f;
  }
  options.batch = batch;
  const std::shared_ptr<mjp::Policy> policy = mjp::Policy::Create(checkpoint, options);
  const auto observations = std::make_shared<mjp_test::Observations>(*checkpoint, batch);
  return {policy->Description(), [policy, observations] {
            mjp::PolicyOutput output;
            policy->Infer(observations->input, output);
            return output.actions;
          }};
}

// A DiT whose sequences run in the sequence kernel where the GPU has clusters.
std::shared_ptr<const mjp::Checkpoint> Dit() {
  mjp::DitConfig config = mjp_test::SmallDitConfig(true);
  config.hidden = 512, config.heads = 8;
  config.horizon = 32;
  config.scheduler.train_steps = 100;
  return mjp_test::SmallDit(config);
}

Work Pictures(int window) {
  mjp::ImageConfig config;
  config.size = 32;
  config.unet.down_dims = {64, 128, 160};
  const mjp::ImageSamplerOptions options = {
      .steps = 20, .batch = 4, .precision = mjp::Precision::kFp16, .graph = true, .window = window};
  const std::shared_ptr<mjp::ImageSampler> sampler =
      mjp::MakeCudaImageSampler(mjp::RandomImageModel(config, 11), options);
  return {"pictures, window " + std::to_string(window),
          [sampler] { return sampler->Sample(9, 0, 4); }};
}

std::vector<Work> AllWork() {
  using mjp::NamedNetwork;
  const auto dit = Dit(), act = mjp_test::ActCheckpoint(mjp_test::SmallActConfig()),
             arms = mjp::LoadCheckpoint(MJPOLICY_SOURCE_DIR "/assets/aloha_transfer_cube");
  return {Decisions(NamedNetwork("compact")),
          Decisions(NamedNetwork("compact"), 4),
          Decisions(NamedNetwork("lerobot-128")),
          Decisions(NamedNetwork("lerobot-128"), 1, 16),
          Decisions(NamedNetwork("notebook"), 3),
          Decisions(NamedNetwork("notebook"), 1, 16),
          Decisions(dit),
          Decisions(dit, 1, 16),
          Decisions(dit, 4),
          Decisions(act, 2),
          Decisions(arms, 2),
          Pictures(0),
          Pictures(5)};
}

// What the other processes run until they are killed; each says on its standard output that it
// has begun.
TEST(Neighbour, DISABLED_DecidesForEver) {
  const Work work = Decisions(mjp::NamedNetwork("notebook"), 3);
  work.run();
  ASSERT_EQ(write(STDOUT_FILENO, &kBegun, 1), 1);
  for (;;) work.run();
}

// This program again, as a neighbour on the GPU.
class Neighbour {
 public:
  Neighbour() {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ != 0) {
      close(ends[1]);
      from_ = ends[0];
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    execl("/proc/self/exe", "neighbour", "--gtest_also_run_disabled_tests",
          "--gtest_filter=Neighbour.*", static_cast<char*>(nullptr));
    _exit(1);
  }
  ~Neighbour() {
    if (pid_ <= 0) return;
    close(from_);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  // Waits until it decides; false if it ended before.
  bool HasBegun() const {
    for (char c = 0; read(from_, &c, 1) == 1;)
      if (c == kBegun) return true;
    return false;
  }
  bool Runs() const { return pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_ = -1;
  int from_ = -1;  // its standard output
};

TEST(TimeSlicing, ResultsKeepTheirBits) {
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  const std::vector<Work> all = AllWork();
  std::vector<std::vector<float>> alone;
  for (const Work& work : all) {
    alone.push_back(work.run());
    ASSERT_EQ(work.run(), alone.back()) << work.description;
  }
  const Neighbour first, second;
  ASSERT_TRUE(first.HasBegun() && second.HasBegun());
  for (size_t i = 0; i < all.size(); ++i) {
    constexpr auto kEach = std::chrono::seconds(6);
    int runs = 0, other = 0;
    for (const auto begin = Clock::now(); Clock::now() - begin < kEach; ++runs)
      other += all[i].run() != alone[i];
    EXPECT_EQ(other, 0) << "of " << runs << " runs, " << all[i].description;
    std::printf("    %d runs, %s\n", runs, all[i].description.c_str());
  }
  EXPECT_TRUE(first.Runs() && second.Runs()) << "nobody else used the GPU";
}

}  // namespace
