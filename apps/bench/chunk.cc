#include <cstdio>

#include "apps/bench/harness.h"
#include "apps/bench/observations.h"
#include "policy/option_names.h"

// All denoising steps on ready features, step by step and with a window: what a chunk costs, and
// what it costs to time it.

namespace pusht {
namespace {

std::string ChainName(const dp::SamplerOptions& sampler) {
  const std::string name =
      std::string(dp::SamplerName(sampler.kind)) + " " + std::to_string(sampler.steps);
  return sampler.parallel_window > 0
             ? name + ", window of " + std::to_string(sampler.parallel_window)
             : name + ", step by step";
}

// The denoising loop by the policy's own borders, and each of its passes.
void AddLoop(const BenchOptions& options, const dp::PolicyOptions& policy_options,
             BenchRows& rows) {
  dp::PolicyOptions timed = policy_options;
  timed.timing = dp::TimingDetail::kSteps;
  const auto with_steps = dp::Policy::Create(options.network, timed);
  const auto policy = dp::Policy::Create(options.network, policy_options);
  const std::string device = policy->options().backend == dp::Backend::kCuda ? "GPU" : "CPU";
  BenchObservations observations(policy->config(), policy_options.batch);
  dp::PolicyOutput output;
  std::vector<double> loop, step;
  int passes = 0;
  policy->Infer(observations.NextChunk(), output);  // captures the graph
  with_steps->Infer(observations.NextChunk(), output);
  RepeatFor(options.seconds, [&] {
    policy->Infer(observations.NextChunk(), output);
    const auto& denoise = output.times[dp::Stage::kDenoise];
    loop.push_back(1e3 * (denoise.end - denoise.begin));
    passes = output.times.passes;
    if (loop.size() % 4 != 0) return;
    with_steps->Infer(observations.NextChunk(), output);
    for (const auto& span : output.times.steps) step.push_back(1e3 * (span.end - span.begin));
  });
  const std::string name = ChainName(policy->options().sampler);
  rows.push_back(FromTimes("chunk", "loop, " + name, loop));
  rows.back().note = std::to_string(passes) + " passes, " + policy->Description();
  rows.push_back(FromTimes("chunk", "one step, " + name, step));
  rows.back().note = "stamps from within the loop";
  if (passes > policy->options().sampler.steps) rows.back().note += ", of each launch's rows";
  for (auto row = rows.end() - 2; row != rows.end(); ++row) row->device = device;
}

// Launch to result with and without the stages' borders, in turn.
void AddCostOfTiming(const BenchOptions& options, BenchRows& rows) {
  dp::PolicyOptions without = options.policy;
  without.timing = dp::TimingDetail::kNone;
  const auto timed = dp::Policy::Create(options.network, options.policy);
  const auto plain = dp::Policy::Create(options.network, without);
  BenchObservations observations(timed->config(), options.policy.batch);
  dp::PolicyOutput output;
  const auto milliseconds = [&](dp::Policy& policy) {
    const double begin = dp::Now();
    policy.Infer(observations.NextChunk(), output);
    return 1e3 * (dp::Now() - begin);
  };
  std::vector<double> on, off;
  milliseconds(*timed), milliseconds(*plain);  // captures the graphs
  RepeatFor(2 * options.seconds, [&] {
    on.push_back(milliseconds(*timed));
    off.push_back(milliseconds(*plain));
  });
  const BenchRow with = FromTimes("chunk", "launch to result, stages timed", on);
  const BenchRow bare = FromTimes("chunk", "launch to result, nothing timed", off);
  rows.push_back(with);
  rows.push_back(bare);
  char text[64];
  std::snprintf(text, sizeof(text), "timing costs %+.2f %%",
                100 * (with.median - bare.median) / bare.median);
  rows.back().note = text;
}

}  // namespace

BenchRows BenchChunk(const BenchOptions& options) {
  constexpr int kWindow = 16;  // where the default is none
  BenchRows rows;
  dp::PolicyOptions plain = options.policy, parallel = options.policy;
  plain.sampler.parallel_window = 0;
  AddLoop(options, plain, rows);
  int& window = parallel.sampler.parallel_window;
  if (window == dp::kAutoWindow)
    window = dp::Policy::Create(options.network, parallel)->options().sampler.parallel_window;
  if (window <= 0) window = kWindow;
  AddLoop(options, parallel, rows);
  AddCostOfTiming(options, rows);
  return rows;
}

}  // namespace pusht
