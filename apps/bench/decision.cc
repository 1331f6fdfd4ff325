#include <array>
#include <cstdio>

#include "apps/bench/harness.h"
#include "apps/bench/observations.h"

// A decision from pictures to actions as the caller waits for it, and its stages.

namespace pusht {

BenchRows BenchDecision(const BenchOptions& options) {
  const auto policy = dp::Policy::Create(options.network, options.policy);
  const std::string device = policy->options().backend == dp::Backend::kCuda ? "GPU" : "CPU";
  BenchObservations observations(policy->config(), options.policy.batch);
  dp::PolicyOutput output;
  std::array<std::vector<double>, dp::kStageCount> stages;
  std::vector<double> whole, pass;
  policy->Infer(observations.Next(), output);  // captures the graph
  Repeat(options, [&] {
    const double begin = dp::Now();
    policy->Infer(observations.Next(), output);
    whole.push_back(1e3 * (dp::Now() - begin));
    for (size_t i = 0; i < dp::kStageCount; ++i) {
      const auto& span = output.times.spans[i];
      if (span.end > span.begin) stages[i].push_back(1e3 * (span.end - span.begin));
    }
    const auto& denoise = output.times[dp::Stage::kDenoise];
    if (output.times.passes > 0)
      pass.push_back(1e3 * (denoise.end - denoise.begin) / output.times.passes);
  });
  BenchRows rows;
  rows.push_back(FromTimes("decision", "decision", whole));
  rows.back().items = policy->options().batch;
  rows.back().unit = "decisions";
  char tail[64];
  std::snprintf(tail, sizeof(tail), ", p99 / median %.3f", rows.back().p99 / rows.back().median);
  rows.back().note = policy->Description() + tail;
  for (size_t i = 0; i < dp::kStageCount; ++i) {
    if (stages[i].empty()) continue;
    rows.push_back(FromTimes("decision", dp::StageName(static_cast<dp::Stage>(i)), stages[i]));
    rows.back().device = device;
  }
  rows.push_back(FromTimes("decision", "pass with its denoising", pass));
  rows.back().device = device;
  rows.back().note = std::to_string(output.times.passes) + " passes per decision";
  return rows;
}

}  // namespace pusht
