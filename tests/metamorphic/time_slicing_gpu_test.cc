// Decisions while other processes use the same GPU. It switches between processes in the middle of
// a kernel, so that some warps and CTAs are milliseconds behind others: a race that hardly ever
// shows alone shows here.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/cuda_policy.h"
#include "tests/support/gpu/observations.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kBegun = '\1';

// One of the forms in which networks run. A window that no rounding meets is abandoned, and the
// chain goes on step by step.
struct Case {
  const char* network;
  int batch = 1, window = 0;
};
const Case kCases[] = {{"compact"},     {"compact", 4},     {"lerobot-128"}, {"lerobot-128", 1, 16},
                       {"notebook", 3}, {"notebook", 1, 16}};

class Decider {
 public:
  explicit Decider(const Case& c) : observations_(c.batch) {
    mjp::PolicyOptions options;
    options.backend = mjp::Backend::kCuda;
    options.precision = mjp::Precision::kFp16;
    options.self_check = false;  // the test is the check
    options.sampler = {mjp::SamplerKind::kDdpm, 100, c.window};
    options.sampler.parallel_tolerance = 1e-9f;
    options.batch = c.batch;
    options.scene_drawer = &mjp::FlatSceneDrawer();
    policy_ = mjp::Policy::Create(mjp::NamedNetwork(c.network), options);
  }
  std::vector<float> Decide() {
    mjp::PolicyOutput output;
    policy_->Infer(observations_.input, output);
    return output.actions;
  }
  std::string Description() const { return policy_->Description(); }

 private:
  mjp_test::Observations observations_;
  std::unique_ptr<mjp::Policy> policy_;
};

// What the other processes run until they are killed; each says on its standard output that it
// has begun.
TEST(Neighbour, DISABLED_DecidesForEver) {
  Decider decider({"notebook", 3});
  decider.Decide();
  ASSERT_EQ(write(STDOUT_FILENO, &kBegun, 1), 1);
  for (;;) decider.Decide();
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

TEST(TimeSlicing, DecisionsKeepTheirBits) {
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  std::vector<std::unique_ptr<Decider>> deciders;
  std::vector<std::vector<float>> alone;
  for (const Case& c : kCases) {
    deciders.push_back(std::make_unique<Decider>(c));
    alone.push_back(deciders.back()->Decide());
    ASSERT_EQ(deciders.back()->Decide(), alone.back()) << c.network;
  }
  const Neighbour first, second;
  ASSERT_TRUE(first.HasBegun() && second.HasBegun());
  for (size_t i = 0; i < deciders.size(); ++i) {
    constexpr auto kEach = std::chrono::seconds(8);
    int decisions = 0, other = 0;
    for (const auto begin = Clock::now(); Clock::now() - begin < kEach; ++decisions)
      other += deciders[i]->Decide() != alone[i];
    EXPECT_EQ(other, 0) << "of " << decisions << " decisions, " << deciders[i]->Description();
    std::printf("    %d decisions, %s\n", decisions, deciders[i]->Description().c_str());
  }
  EXPECT_TRUE(first.Runs() && second.Runs()) << "nobody else used the GPU";
}

}  // namespace
