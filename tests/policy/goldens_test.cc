#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/cpu/unet.h"
#include "policy/policy.h"
#include "policy/scheduler.h"
#include "tests/support/check_close.h"
#include "tests/support/golden_runs.h"

// The CPU policy against what LeRobot, diffusers and the original code computed, in float64.

namespace {

using pusht_test::CheckClose;
using pusht_test::GoldenRun;

// largest differences, float32: the goldens' own suggestion
constexpr double kCondLimit = 2e-5, kEpsLimit = 1e-5, kXLimit = 3e-5, kPixelLimit = 5e-3;

std::unique_ptr<dp::Policy> MakePolicy(const GoldenRun& run, int batch) {
  dp::PolicyOptions options;
  options.backend = dp::Backend::kCpu;
  options.sampler.kind = run.kind;
  options.sampler.steps = run.steps;
  options.batch = batch;
  return dp::Policy::Create(pusht_test::GoldenCheckpoint(run.network), options);
}

class Goldens : public testing::TestWithParam<GoldenRun> {};

TEST_P(Goldens, ChainAgreesAtEveryStep) {
  const GoldenRun& run = GetParam();
  SHARED_OR_SKIP(path, std::string("goldens/") + run.file + ".safetensors");
  const auto file = dp::SafetensorsFile::Read(path);
  const pusht_test::GoldenInputs inputs(run, 1);
  dp::PolicyTrace trace;
  dp::PolicyOutput output;
  output.trace = &trace;
  MakePolicy(run, 1)->Infer(inputs.input, output);

  const std::vector<int64_t> timesteps = file.Integers("out/timesteps");
  EXPECT_EQ(std::vector<int64_t>(trace.timesteps.begin(), trace.timesteps.end()), timesteps);
  EXPECT_EQ(output.times.passes, run.steps);
  if (run.frames != nullptr) {
    EXPECT_TRUE(CheckClose(trace.global_cond, file.Floats("out/global_cond.f64").data, kCondLimit));
  }
  EXPECT_TRUE(CheckClose(trace.eps_steps, file.Floats("out/eps_steps.f64").data, kXLimit));
  EXPECT_TRUE(CheckClose(trace.x_steps, file.Floats("out/x_steps.f64").data, kXLimit));
  EXPECT_TRUE(CheckClose(output.actions, file.Floats("out/action_full.f64").data, kPixelLimit));
}

// Every step alone, from the stored x: an error cannot hide behind the clip, nor grow. All steps
// are rows of one batch, each at its own timestep.
TEST_P(Goldens, EveryStepAloneAgrees) {
  const GoldenRun& run = GetParam();
  SHARED_OR_SKIP(path, std::string("goldens/") + run.file + ".safetensors");
  const auto file = dp::SafetensorsFile::Read(path);
  const auto checkpoint = pusht_test::GoldenCheckpoint(run.network);
  const std::vector<dp::DenoiseStep> schedule =
      dp::MakeSchedule(checkpoint->config.scheduler, run.kind, run.steps);
  std::vector<int> timesteps, step;
  for (int k = 0; k < run.steps; ++k) {
    timesteps.push_back(schedule[k].timestep);
    step.push_back(k);
  }
  const std::vector<float> x_steps = file.Floats("out/x_steps.f64").data;
  const std::vector<float> eps_steps = file.Floats("out/eps_steps.f64").data;
  std::vector<float> x = file.Floats("in/x_T").data;
  const size_t row = x.size();
  x.insert(x.end(), x_steps.begin(), x_steps.end() - static_cast<ptrdiff_t>(row));

  dp::cpu::ThreadPool pool(2);
  dp::cpu::Unet unet(dp::cpu::PackUnet(checkpoint->config, checkpoint->unet), checkpoint->config,
                     timesteps, run.steps, 1, pool);
  const char* cond = run.frames != nullptr ? "out/global_cond.f64" : "in/global_cond";
  unet.Condition(file.Floats(cond).data, 1);
  const std::vector<int> environment(run.steps, 0);
  std::vector<float> eps(x.size());
  unet.Forward(x.data(), step.data(), environment.data(), run.steps, eps.data());
  EXPECT_TRUE(CheckClose(eps, eps_steps, kEpsLimit));

  std::vector<float> tape(dp::SamplerKind::kDdpm == run.kind ? 0 : 100 * row);
  if (tape.empty()) tape = file.Floats("in/noise_by_t").data;
  std::vector<float> next(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const dp::DenoiseStep& s = schedule[i / row];
    next[i] = dp::Denoise(s, x[i], eps_steps[i], tape[s.timestep * row + i % row]);
  }
  EXPECT_TRUE(CheckClose(next, x_steps, 2e-6 * 4));
}

INSTANTIATE_TEST_SUITE_P(All, Goldens, testing::ValuesIn(pusht_test::kGoldenRuns),
                         [](const auto& info) { return std::string(info.param.file); });

}  // namespace
