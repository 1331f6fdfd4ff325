#ifndef TESTS_POLICY_GOLDEN_CHECKS_H_
#define TESTS_POLICY_GOLDEN_CHECKS_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "policy/cpu/unet.h"
#include "policy/policy.h"
#include "policy/scheduler.h"
#include "policy/unet/unet_model.h"
#include "tests/support/check_close.h"
#include "tests/support/goldens/golden_runs.h"

// The CPU policy against a stored run of the original libraries, in float64.

namespace mjp_test {

// largest differences, float32: the goldens' own suggestion
inline constexpr double kCondLimit = 2e-5, kMapLimit = 5e-5, kEpsLimit = 1e-5, kXLimit = 3e-5;
inline constexpr double kPixelLimit = 5e-3;

inline mjp::PolicyOptions CpuOptions(mjp::SamplerKind kind, int steps) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.sampler.kind = kind;
  options.sampler.steps = steps;
  return options;
}

// The whole chain from the inputs: conditioning, every eps and x, actions.
inline void CheckChain(const GoldenRun& run) {
  const mjp::SafetensorsFile file = ReadGolden(run.file);
  const GoldenInputs inputs(run, 1);
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  mjp::Policy::Create(GoldenCheckpoint(run.network), CpuOptions(run.kind, run.steps))
      ->Infer(inputs.input, output);

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

// The network's eps for rows of x, each at a step of its own of one schedule.
inline std::vector<float> EpsOf(const mjp::Checkpoint& checkpoint,
                                const std::vector<int>& timesteps, const std::vector<float>& cond,
                                int environments, const std::vector<float>& x,
                                const std::vector<int>& step, const std::vector<int>& environment) {
  const int rows = static_cast<int>(step.size());
  mjp::cpu::ThreadPool pool(2);
  const mjp::UnetModel& network = mjp::UnetOf(checkpoint);
  mjp::cpu::Unet unet(mjp::cpu::PackUnet(network.config, network.unet), network.config, timesteps,
                      rows, environments, pool);
  unet.SetConditioning(cond, environments);
  std::vector<float> eps(x.size());
  unet.Forward(x.data(), step.data(), environment.data(), rows, eps.data());
  return eps;
}

// Every step alone, from the stored x: an error cannot hide behind the clip, nor grow. All steps
// are rows of one batch, each at its own timestep.
inline void CheckStepsAlone(const GoldenRun& run) {
  const mjp::SafetensorsFile file = ReadGolden(run.file);
  const auto checkpoint = GoldenCheckpoint(run.network);
  const std::vector<mjp::DenoiseStep> schedule =
      mjp::MakeSchedule(mjp::UnetOf(*checkpoint).config.scheduler, run.kind, run.steps);
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
  const char* cond = run.frames != nullptr ? "out/global_cond.f64" : "in/global_cond";
  EXPECT_TRUE(CheckClose(EpsOf(*checkpoint, timesteps, file.Floats(cond).data, 1, x, step,
                               std::vector<int>(run.steps, 0)),
                         eps_steps, kEpsLimit));

  std::vector<float> recorded_noise(mjp::SamplerKind::kDdpm == run.kind ? 0 : 100 * row);
  if (recorded_noise.empty()) recorded_noise = file.Floats("in/noise_by_t").data;
  std::vector<float> next(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const mjp::DenoiseStep& s = schedule[i / row];
    next[i] = mjp::Denoise(s, x[i], eps_steps[i], recorded_noise[s.timestep * row + i % row]);
  }
  // 2e-6 of the largest x; a stored eps is a rounded one, which the first step amplifies
  EXPECT_TRUE(CheckClose(next, x_steps, 8e-6));
}

}  // namespace mjp_test

#endif  // TESTS_POLICY_GOLDEN_CHECKS_H_
