#include <cstdio>

#include "apps/bench/harness.h"
#include "apps/bench/observations.h"
#include "policy/checkpoint/network_model.h"
#include "policy/option_names.h"

// All denoising steps on ready features, step by step and with a window: what a chunk costs, and
// what it costs to time it.

namespace mjp::app {
namespace {

std::string ChainName(const mjp::SamplerOptions& sampler) {
  const std::string name =
      std::string(mjp::SamplerName(sampler.kind)) + " " + std::to_string(sampler.steps);
  return sampler.parallel_window > 0
             ? name + ", window of " + std::to_string(sampler.parallel_window)
             : name + ", step by step";
}

// The denoising loop by the policy's own borders, and each of its passes.
void AddLoop(const BenchOptions& options, const mjp::PolicyOptions& policy_options,
             BenchRows& rows) {
  mjp::PolicyOptions timed = policy_options;
  timed.timing = mjp::TimingDetail::kSteps;
  const auto with_steps = mjp::Policy::Create(options.network, timed);
  const auto policy = mjp::Policy::Create(options.network, policy_options);
  const std::string device = policy->options().backend == mjp::Backend::kCuda ? "GPU" : "CPU";
  BenchObservations observations(*options.network, policy_options.batch);
  mjp::PolicyOutput output;
  std::vector<double> loop, step;
  int passes = 0;
  policy->Infer(observations.NextChunk(), output);  // captures the graph
  with_steps->Infer(observations.NextChunk(), output);
  RepeatFor(options.seconds, [&] {
    policy->Infer(observations.NextChunk(), output);
    const auto& denoise = output.times[mjp::Stage::kDenoise];
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
  mjp::PolicyOptions without = options.policy;
  without.timing = mjp::TimingDetail::kNone;
  const auto timed = mjp::Policy::Create(options.network, options.policy);
  const auto plain = mjp::Policy::Create(options.network, without);
  BenchObservations observations(*options.network, options.policy.batch);
  mjp::PolicyOutput output;
  const auto milliseconds = [&](mjp::Policy& policy) {
    const double begin = mjp::Now();
    policy.Infer(observations.NextChunk(), output);
    return 1e3 * (mjp::Now() - begin);
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
  const mjp::SamplerTraits sampler = options.network->network->sampler();
  if (sampler.kinds.empty())
    return {Skipped("chunk", "all denoising steps", "one pass makes this policy's chunk")};
  BenchRows rows;
  mjp::PolicyOptions plain = options.policy, parallel = options.policy;
  plain.sampler.parallel_window = 0;
  AddLoop(options, plain, rows);
  if (!sampler.parallel) return rows;
  int& window = parallel.sampler.parallel_window;
  if (window == mjp::kAutoWindow)
    window = mjp::Policy::Create(options.network, parallel)->options().sampler.parallel_window;
  if (window <= 0) window = kWindow;
  AddLoop(options, parallel, rows);
  AddCostOfTiming(options, rows);
  return rows;
}

}  // namespace mjp::app
