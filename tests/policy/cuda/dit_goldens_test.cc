#include "tests/policy/dit/dit_goldens.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/self_check.h"
#include "tests/support/goldens/differences.h"

// multi_task_dit on the GPU against what LeRobot computed in float64. Limits: the goldens' own
// suggestion.

namespace {

using mjp::Precision;

struct Limits {
  double cond, out, x, actions;
};
Limits LimitsOf(Precision precision) {
  if (precision == Precision::kFp32) return {2e-5, 4e-6, 2e-5, 3e-5};
  if (precision == Precision::kBf16) return {1e-1, 3e-2, 1e-1, 2e-1};
  return {1e-2, 3e-3, 1e-2, 2e-2};
}

// The last of `batch` environments alike, of values (rows, batch, size).
std::vector<float> LastOf(const std::vector<float>& all, size_t rows, int batch) {
  const size_t size = all.size() / rows / batch;
  std::vector<float> one;
  for (size_t r = 0; r < rows; ++r) {
    const auto from = all.begin() + static_cast<ptrdiff_t>(((r + 1) * batch - 1) * size);
    one.insert(one.end(), from, from + static_cast<ptrdiff_t>(size));
  }
  return one;
}

class CudaDit : public testing::TestWithParam<std::tuple<const char*, Precision>> {
 protected:
  // A decision of `batch` environments alike, from the pictures or from the stored condition.
  void Check(int batch, bool from_pictures) {
    const std::string chain = std::get<0>(GetParam());
    const std::string network = mjp_test::DitCase(chain)["network"];
    const auto checkpoint = mjp_test::DitCheckpoint(chain);
    const mjp_test::DitInputs one(network, checkpoint->config);
    const mjp::SafetensorsFile file = mjp_test::DitTensors(chain);
    const mjp::SafetensorsFile inputs = mjp_test::DitTensors(network);
    const mjp::SamplerTraits traits = checkpoint->network->sampler();
    const std::vector<float> cond = inputs.Floats("out/cond.f64").data;
    const auto frames = mjp_test::Repeated(one.frames, batch);
    const auto state = mjp_test::Repeated(one.state, batch),
               x_start = mjp_test::Repeated(one.x_start, batch);
    const auto conds = mjp_test::Repeated(cond, batch);
    const std::vector<std::vector<int>> ids(batch, mjp_test::TextIds(inputs));
    std::vector<float> noise;
    for (int t = 0; t < traits.noise_steps; ++t) {
      const auto size = static_cast<ptrdiff_t>(one.x_start.size());
      const auto from = one.noise.begin() + t * size;
      for (int n = 0; n < batch; ++n) noise.insert(noise.end(), from, from + size);
    }
    mjp::PolicyInput input;
    input.count = batch;
    input.x_start = x_start;
    input.noise_by_t = noise;
    if (from_pictures) {
      input.frames = frames, input.state = state, input.instruction_ids = ids;
    } else {
      input.global_cond = conds;
    }
    mjp::PolicyOptions options;
    options.self_check = false;  // the test is the check
    options.precision = std::get<1>(GetParam());
    options.batch = batch;
    options.sampler = mjp::ResolveSampler({}, *checkpoint);
    const auto policy = mjp::CreateCudaPolicy(checkpoint, options);
    mjp::PolicyTrace trace;
    mjp::PolicyOutput eager, graph;
    eager.trace = &trace;
    policy->Infer(input, eager);
    policy->Infer(input, graph);
    EXPECT_EQ(eager.actions, graph.actions) << "a graph must give the bits of its launches";
    const Limits limits = LimitsOf(options.precision);
    const double factor = chain == "dit_absolute_ddim20" ? 3 : 1;  // divides by small noise levels
    const auto check = [&](const char* what, const std::vector<float>& a,
                           const std::vector<float>& b, double limit) {
      const double worst = mjp_test::LargestDifference(a, b);
      RecordProperty(what, std::to_string(worst));
      EXPECT_LE(worst, limit) << what;
    };
    check("cond", LastOf(trace.global_cond, 1, batch), cond, limits.cond);
    const std::vector<float> x_steps = file.Floats("out/x_steps.f64").data;
    const size_t steps = x_steps.size() / one.x_start.size();
    check("x_steps", LastOf(trace.x_steps, steps, batch), x_steps, factor * limits.x);
    check("actions", LastOf(graph.actions, 1, batch), file.Floats("out/action_full.f64").data,
          limits.actions);
    std::vector<float> passes = file.Floats("out/pass_out.f64").data;
    EXPECT_EQ(trace.eps_steps.size(), passes.size() * batch);
    if (from_pictures) return;
    // the first pass has the goldens' own x and condition
    passes.resize(one.x_start.size());
    trace.eps_steps.resize(passes.size() * batch);
    check("out", LastOf(trace.eps_steps, 1, batch), passes, limits.out);
  }
};

TEST_P(CudaDit, AgreesWithTheGoldens) {
  SHARED_OR_SKIP(goldens, "goldens_act_dit/README.md");
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  for (const int batch : {1, 3}) {
    for (const bool from_pictures : {true, false}) {
      SCOPED_TRACE(testing::Message() << "batch " << batch << ", pictures " << from_pictures);
      Check(batch, from_pictures);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaDit,
    testing::Combine(
        testing::Values("dit_compact_ddpm100", "dit_compact_ddpm10", "dit_compact_ddim10",
                        "dit_compact_euler100", "dit_compact_rk4_10", "dit_absolute_ddim20",
                        "dit_absolute_rk4_5", "dit_tiny_euler10", "dit_default_ddpm100",
                        "dit_default_euler100"),
        testing::Values(Precision::kFp32, Precision::kTf32, Precision::kFp16, Precision::kBf16)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param)) + "_" +
             std::to_string(static_cast<int>(std::get<1>(info.param)));
    });

// Step by step and by windows of steps with their fallback, against the CPU.
TEST(CudaDitSelfCheck, Passes) {
  SHARED_OR_SKIP(goldens, "goldens_act_dit/README.md");
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  for (const char* chain : {"dit_compact_ddpm100", "dit_compact_ddim10", "dit_tiny_euler10"}) {
    const auto checkpoint = mjp_test::DitCheckpoint(chain);
    const bool diffusion = checkpoint->network->sampler().parallel;
    for (const int window : {0, 8}) {
      if (window > 0 && !diffusion) continue;
      for (const Precision precision : {Precision::kFp32, Precision::kFp16}) {
        mjp::PolicyOptions options;
        options.precision = precision;
        options.batch = 2;
        options.sampler.parallel_window = window;
        options.sampler = mjp::ResolveSampler(options.sampler, *checkpoint);
        const mjp::SelfCheck check = mjp::RunSelfCheck(checkpoint, options);
        EXPECT_TRUE(check.Passed())
            << chain << ", window " << window << ": " << check.error << " above " << check.limit;
      }
    }
  }
}

}  // namespace
