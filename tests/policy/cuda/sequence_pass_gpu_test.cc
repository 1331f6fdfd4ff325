// The sequence kernel by itself, in each of its widths, head sizes and numbers of tokens: passes
// against their definition in double precision, chains in a graph against step by step, and the
// bits of an environment, which no other one changes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/dit/sequence_pass.h"
#include "tests/policy/dit/dit_reference.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp::Format;
using mjp::Precision;
using mjp_test::Matrix;
using mjp_test::RandomFloats;

struct Case {
  int width, heads, layers, horizon, actions;
  bool rope;
};
const Case kCases[] = {{512, 8, 2, 32, 2, true}, {512, 16, 1, 30, 14, false},
                       {256, 4, 3, 16, 2, true}, {256, 8, 1, 21, 7, true},
                       {128, 4, 2, 16, 3, true}, {128, 8, 2, 9, 2, false},
                       {64, 1, 2, 32, 64, true}, {64, 4, 3, 7, 1, true},
                       {512, 8, 1, 1, 2, true},  {512, 32, 3, 17, 5, true}};

mjp::DitConfig ConfigOf(const Case& c) {
  mjp::DitConfig config = mjp_test::SmallDitConfig(c.rope);
  config.hidden = c.width, config.heads = c.heads, config.layers = c.layers;
  config.horizon = c.horizon, config.n_action_steps = 1, config.n_obs_steps = 1;
  config.action_dim = c.actions;
  return config;
}

std::shared_ptr<mjp::Checkpoint> CheckpointOf(const mjp::DitConfig& config) {
  const auto checkpoint = mjp_test::SmallDit(config);
  const auto actions = static_cast<size_t>(config.action_dim);
  checkpoint->stats.action = {mjp::Normalization::kMinMax, std::vector<float>(actions, -1.0f),
                              std::vector<float>(actions, 1.0f)};
  return checkpoint;
}

bool HaveKernel(std::string* why) {
  if (!mjp::CudaUsable(why)) return false;
  const mjp::GpuTraits& gpu = mjp::GpuTraits::Current();
  if (mjp::SequenceKernelRuns(ConfigOf(kCases[0]), Format::kFp16, 1, gpu)) return true;
  *why = gpu.name + " with this code has no clusters";
  return false;
}

// A decision of the environments [first, first + count) of three whose inputs are given.
struct Decision {
  mjp::PolicyOutput output;
  mjp::PolicyTrace trace;
};
class SequencePassRun {
 public:
  SequencePassRun(const Case& c, Precision precision)
      : config_(ConfigOf(c)),
        checkpoint_(CheckpointOf(config_)),
        precision_(precision),
        cond_(RandomFloats(size_t{kEnvironments} * config_.CondDim(), 1)),
        x_(RandomFloats(kEnvironments * Elements(), 2)) {}

  static constexpr size_t kEnvironments = 3;
  size_t Elements() const { return size_t{1} * config_.horizon * config_.action_dim; }

  std::unique_ptr<mjp::Policy> Make(int batch) const {
    mjp::PolicyOptions options;
    options.self_check = false;  // the test is the check
    options.precision = precision_;
    options.batch = batch;
    options.sampler = mjp::ResolveSampler({}, *checkpoint_);
    return mjp::CreateCudaPolicy(checkpoint_, options);
  }
  void Decide(mjp::Policy& policy, size_t first, size_t count, bool traced,
              Decision& decision) const {
    std::vector<mjp::NoiseKey> keys;
    for (size_t i = first; i < first + count; ++i) keys.push_back({i, 0});
    mjp::PolicyInput input;
    input.count = static_cast<int>(count);
    input.keys = keys;
    const std::span<const float> conds(cond_), starts(x_);
    const size_t cond = cond_.size() / kEnvironments;
    input.global_cond = conds.subspan(first * cond, count * cond);
    input.x_start = starts.subspan(first * Elements(), count * Elements());
    decision.output.trace = traced ? &decision.trace : nullptr;
    policy.Infer(input, decision.output);
  }
  // Of environment `n` of a decision: the network's output in the first step, and the actions.
  Matrix FirstStep(const Decision& decision, size_t n) const {
    const auto from = decision.trace.eps_steps.begin() + static_cast<ptrdiff_t>(n * Elements());
    return Matrix(from, from + static_cast<ptrdiff_t>(Elements()));
  }
  std::vector<float> ActionsOf(const Decision& decision, size_t n) const {
    const auto from = decision.output.actions.begin() + static_cast<ptrdiff_t>(n * Elements());
    return std::vector<float>(from, from + static_cast<ptrdiff_t>(Elements()));
  }
  Matrix Expected(size_t environment) const {
    const auto part = [&](const std::vector<float>& all) {
      const auto size = static_cast<ptrdiff_t>(all.size() / kEnvironments);
      const auto from = all.begin() + static_cast<ptrdiff_t>(environment) * size;
      return Matrix(from, from + size);
    };
    const mjp::SchedulerConfig& scheduler = config_.scheduler;
    const int stride = scheduler.train_steps / scheduler.inference_steps;
    const double time = (scheduler.inference_steps - 1) * stride;
    return mjp_test::TrunkReference(mjp::DitOf(*checkpoint_).weights, config_, part(x_), time,
                                    part(cond_));
  }

 private:
  mjp::DitConfig config_;
  std::shared_ptr<mjp::Checkpoint> checkpoint_;
  Precision precision_;
  std::vector<float> cond_, x_;
};

class SequencePassGpu : public testing::TestWithParam<Precision> {};

TEST_P(SequencePassGpu, AgreesWithTheDefinition) {
  std::string why;
  if (!HaveKernel(&why)) GTEST_SKIP() << why;
  // the limits of one pass in docs/NUMERICS.md
  const double limit = GetParam() == Precision::kFp16 ? 3e-3 : 3e-2;
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.width << " wide, " << c.heads << " heads, " << c.horizon
                                    << " tokens of " << c.actions);
    const SequencePassRun run(c, GetParam());
    const auto policy = run.Make(3);
    EXPECT_THAT(policy->Description(), testing::HasSubstr("sequence kernel"));
    EXPECT_THAT(policy->Description(), testing::Not(testing::HasSubstr("across clusters")));
    Decision traced, graph, alone;
    run.Decide(*policy, 0, 3, true, traced);
    run.Decide(*policy, 0, 3, false, graph);
    EXPECT_EQ(traced.output.actions, graph.output.actions);
    for (const size_t n : {size_t{0}, size_t{2}}) {
      EXPECT_TRUE(mjp_test::CheckClose(run.FirstStep(traced, n), run.Expected(n), limit))
          << "environment " << n;
      run.Decide(*policy, n, 1, false, alone);
      EXPECT_EQ(alone.output.actions, run.ActionsOf(graph, n));
    }
  }
}

// One sequence of a width of 512 has eight clusters: the same checks, and fifty decisions that give
// the same bits, whatever the order in which values come through L2.
TEST_P(SequencePassGpu, AcrossClustersAgreesWithTheDefinition) {
  std::string why;
  if (!HaveKernel(&why)) GTEST_SKIP() << why;
  const double limit = GetParam() == Precision::kFp16 ? 3e-3 : 3e-2;
  for (const Case& c : kCases) {
    if (c.width != 512) continue;
    SCOPED_TRACE(testing::Message()
                 << c.heads << " heads, " << c.horizon << " tokens of " << c.actions);
    const mjp::GpuTraits& gpu = mjp::GpuTraits::Current();
    if (!mjp::SequenceClustersRun(ConfigOf(c), Format::kFp16, 1, gpu))
      GTEST_SKIP() << gpu.name << " has no room for eight clusters at once";
    const SequencePassRun run(c, GetParam());
    const auto policy = run.Make(1);
    EXPECT_THAT(policy->Description(), testing::HasSubstr("across clusters"));
    for (const size_t n : {size_t{0}, size_t{2}}) {
      Decision traced, graph, again;
      run.Decide(*policy, n, 1, true, traced);
      run.Decide(*policy, n, 1, false, graph);
      EXPECT_EQ(traced.output.actions, graph.output.actions);
      EXPECT_TRUE(mjp_test::CheckClose(run.FirstStep(traced, 0), run.Expected(n), limit))
          << "environment " << n;
      for (int i = 0; i < 50; ++i) {
        run.Decide(*policy, n, 1, false, again);
        ASSERT_EQ(again.output.actions, graph.output.actions) << "decision " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, SequencePassGpu,
                         testing::Values(Precision::kFp16, Precision::kBf16), [](const auto& info) {
                           return info.param == Precision::kFp16 ? "Fp16" : "Bf16";
                         });

TEST(SequencePassTest, RunsWhatItSays) {
  const mjp::GpuTraits h100 = mjp::GpuTraits::Named("h100");
  const auto runs = [&](const Case& c, Format format = Format::kFp16, int rows = 1) {
    return mjp::SequenceKernelRuns(ConfigOf(c), format, rows, h100);
  };
  for (const Case& c : kCases) EXPECT_TRUE(runs(c)) << c.width << ", " << c.horizon;
  EXPECT_FALSE(runs(kCases[0], Format::kFp32));
  // clusters of eight fill 112 of 132 multiprocessors, or 120: it depends on the H100
  EXPECT_TRUE(runs(kCases[0], Format::kFp16, 14));
  EXPECT_FALSE(runs(kCases[0], Format::kFp16, 15));
  EXPECT_FALSE(runs({512, 8, 2, 33, 2, true}));
  EXPECT_FALSE(runs({384, 6, 2, 16, 2, true}));
  EXPECT_FALSE(runs({512, 4, 2, 16, 2, true}));
  EXPECT_FALSE(runs({64, 8, 2, 16, 2, true}));
  EXPECT_FALSE(runs({64, 1, 2, 16, 65, true}));
  EXPECT_FALSE(mjp::SequenceKernelRuns(ConfigOf(kCases[0]), Format::kFp16, 1,
                                       mjp::GpuTraits::Named("a100")));
}

TEST(SequencePassTest, RunsAcrossClustersWhatItSays) {
  const auto runs = [&](const Case& c, const char* gpu, int rows = 1) {
    return mjp::SequenceClustersRun(ConfigOf(c), Format::kFp16, rows, mjp::GpuTraits::Named(gpu));
  };
  for (const Case& c : kCases) EXPECT_EQ(runs(c, "h100"), c.width == 512) << c.width;
  EXPECT_FALSE(runs(kCases[0], "h100", 2));
  EXPECT_TRUE(runs(kCases[0], "h100-pcie"));
  EXPECT_FALSE(runs({512, 8, 33, 32, 2, true}, "h100"));  // more blocks than it has places for
  for (const char* gpu : {"thor", "a100", "rtx4090", "rtx5090"})
    EXPECT_FALSE(runs(kCases[0], gpu)) << gpu;
  const auto later = [](const char* traits) {
    return mjp::SequenceClustersRun(ConfigOf(kCases[0]), Format::kFp16, 1,
                                    mjp::OverriddenTraits(mjp::GpuTraits::Named("h100"), traits));
  };
  EXPECT_TRUE(later("capability=130 code=110"));
  EXPECT_FALSE(later("capability=130 code=120 clusters=8")) << "that code traps";
}

}  // namespace
