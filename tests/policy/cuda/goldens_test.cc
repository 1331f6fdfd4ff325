#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

#include "policy/cuda/cuda_policy.h"
#include "tests/support/goldens/differences.h"
#include "tests/support/goldens/golden_runs.h"

namespace {

using mjp::Precision;
using mjp_test::FirstEnvironment;
using mjp_test::GoldenInputs;
using mjp_test::GoldenRun;
using mjp_test::kGoldenRuns;

// Largest differences from the float64 goldens, by number format: goldens' own suggestion.
struct Limits {
  double cond, x, pixels;
};
Limits LimitsOf(Precision p) {
  if (p == Precision::kFp32) return {2e-5, 3e-5, 5e-3};
  if (p == Precision::kBf16) return {3e-2, 6e-2, 8.0};
  return {5e-3, 1e-2, 2.0};
}

class CudaGoldens : public testing::TestWithParam<std::tuple<int, Precision>> {};

TEST_P(CudaGoldens, ChainAgreesStepByStep) {
  const GoldenRun& golden = kGoldenRuns[std::get<0>(GetParam())];
  SHARED_OR_SKIP(path, std::string("goldens/") + golden.file + ".safetensors");
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  const auto file = mjp::SafetensorsFile::Read(path);
  const auto checkpoint = mjp_test::GoldenCheckpoint(golden.network);
  const Limits limits = LimitsOf(std::get<1>(GetParam()));
  for (const int batch : {1, 3}) {
    SCOPED_TRACE("batch " + std::to_string(batch));
    mjp::PolicyOptions options;
    options.self_check = false;  // the test is the check
    options.precision = std::get<1>(GetParam());
    options.sampler.kind = golden.kind;
    options.sampler.steps = golden.steps;
    options.sampler.parallel_window = 0;
    options.batch = batch;
    const auto policy = mjp::CreateCudaPolicy(checkpoint, options);
    const GoldenInputs inputs(golden, batch);
    mjp::PolicyTrace trace;
    mjp::PolicyOutput eager, graph;
    eager.trace = &trace;
    policy->Infer(inputs.input, eager);
    policy->Infer(inputs.input, graph);
    EXPECT_EQ(eager.actions, graph.actions) << "a graph must give the bits of its launches";

    if (golden.frames != nullptr) {
      const double cond = mjp_test::LargestDifference(FirstEnvironment(trace.global_cond, 1, batch),
                                                      file.Floats("out/global_cond.f64").data);
      RecordProperty("cond", std::to_string(cond));
      EXPECT_LE(cond, limits.cond) << "global_cond";
    }
    const size_t steps = golden.steps;
    const double x = mjp_test::LargestDifference(FirstEnvironment(trace.x_steps, steps, batch),
                                                 file.Floats("out/x_steps.f64").data);
    const double eps = mjp_test::LargestDifference(FirstEnvironment(trace.eps_steps, steps, batch),
                                                   file.Floats("out/eps_steps.f64").data);
    const double pixels = mjp_test::LargestDifference(FirstEnvironment(graph.actions, 1, batch),
                                                      file.Floats("out/action_full.f64").data);
    std::printf("    %s batch %d: eps %.2g x %.2g pixels %.2g\n", golden.file, batch, eps, x,
                pixels);
    EXPECT_LE(eps, limits.x) << "eps_steps";
    EXPECT_LE(x, limits.x) << "x_steps";
    EXPECT_LE(pixels, limits.pixels) << "actions";
  }
}

mjp::PolicyOptions WindowOptions(const GoldenRun& golden, Precision precision, float tolerance) {
  mjp::PolicyOptions options;
  options.self_check = false;  // the test is the check
  options.precision = precision;
  options.sampler.kind = golden.kind;
  options.sampler.steps = golden.steps;
  options.sampler.parallel_window = 16;
  options.sampler.parallel_tolerance = tolerance;
  return options;
}

class CudaTimeParallel : public testing::TestWithParam<std::tuple<int, Precision>> {};

TEST_P(CudaTimeParallel, ReachesTheChainInFewerPasses) {
  const GoldenRun& golden = kGoldenRuns[std::get<0>(GetParam())];
  const Precision precision = std::get<1>(GetParam());
  SHARED_OR_SKIP(path, std::string("goldens/") + golden.file + ".safetensors");
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  mjp::PolicyOptions options = WindowOptions(golden, precision, 0.01f);
  const auto checkpoint = mjp_test::GoldenCheckpoint(golden.network);
  const auto policy = mjp::CreateCudaPolicy(checkpoint, options);
  const GoldenInputs inputs(golden, 1);
  mjp::PolicyTrace trace, cpu_trace;
  mjp::PolicyOutput eager, graph, cpu;
  eager.trace = &trace;
  policy->Infer(inputs.input, eager);
  policy->Infer(inputs.input, graph);
  EXPECT_EQ(eager.actions, graph.actions)
      << "the loop in the graph must give the host's loop's bits";
  EXPECT_EQ(eager.times.passes, graph.times.passes);
  EXPECT_LT(graph.times.passes, std::min(40, golden.steps + 1));

  // the CPU's windows, which the goldens hold against the chain step by step
  options.backend = mjp::Backend::kCpu;
  options.precision = Precision::kAuto;
  options.threads = 4;
  cpu.trace = &cpu_trace;
  mjp::Policy::Create(checkpoint, options)->Infer(inputs.input, cpu);
  const std::vector<float>& expected = cpu_trace.x_steps;
  ASSERT_EQ(trace.x_steps.size(), expected.size());
  const size_t elements = expected.size() / golden.steps;
  const double x = mjp_test::LargestDifference(
      {trace.x_steps.end() - static_cast<ptrdiff_t>(elements), trace.x_steps.end()},
      {expected.end() - static_cast<ptrdiff_t>(elements), expected.end()});
  std::printf("    %s window 16: x %.2g in %d passes, CPU %d\n", golden.file, x, graph.times.passes,
              cpu.times.passes);
  EXPECT_LE(std::abs(graph.times.passes - cpu.times.passes), 1);
  EXPECT_LE(x, LimitsOf(precision).x) << "last x";
}

// With a tolerance that roundings alone exceed the window is abandoned, and its other steps are
// taken one by one.
TEST_P(CudaTimeParallel, GivesUpWhereTheWindowDoesNotConverge) {
  const GoldenRun& golden = kGoldenRuns[std::get<0>(GetParam())];
  const Precision precision = std::get<1>(GetParam());
  SHARED_OR_SKIP(path, std::string("goldens/") + golden.file + ".safetensors");
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  const mjp::PolicyOptions options = WindowOptions(golden, precision, 1e-9f);
  const auto policy = mjp::CreateCudaPolicy(mjp_test::GoldenCheckpoint(golden.network), options);
  const GoldenInputs inputs(golden, 1);
  mjp::PolicyTrace trace;
  mjp::PolicyOutput eager, graph;
  eager.trace = &trace;
  policy->Infer(inputs.input, eager);
  policy->Infer(inputs.input, graph);
  EXPECT_EQ(eager.actions, graph.actions);
  EXPECT_LE(graph.times.passes, golden.steps);
  const auto file = mjp::SafetensorsFile::Read(path);
  EXPECT_LE(mjp_test::LargestDifference(FirstEnvironment(trace.x_steps, golden.steps, 1),
                                        file.Floats("out/x_steps.f64").data),
            LimitsOf(precision).x)
      << "x_steps";
  std::printf("    %s abandoned its window: %d passes\n", golden.file, graph.times.passes);
}

std::string TestName(const testing::TestParamInfo<std::tuple<int, Precision>>& info) {
  constexpr const char* kNames[] = {"Auto", "Fp32", "Tf32", "Fp16", "Bf16"};
  return std::string(kGoldenRuns[std::get<0>(info.param)].file) +
         kNames[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(All, CudaGoldens,
                         testing::Combine(testing::Range(0, 6),
                                          testing::Values(Precision::kFp32, Precision::kTf32,
                                                          Precision::kFp16, Precision::kBf16)),
                         TestName);

INSTANTIATE_TEST_SUITE_P(All, CudaTimeParallel,
                         testing::Combine(testing::Values(0, 1, 3),
                                          testing::Values(Precision::kFp32, Precision::kFp16,
                                                          Precision::kBf16)),
                         TestName);

}  // namespace
