#include <atomic>
#include <numeric>

#include "apps/bench/harness.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/pusht/evaluation/pusht_task.h"

// Episodes as an evaluation runs them: physics on the cores, pictures and network for the batch.

namespace mjp::app {

BenchRows BenchBatch(const BenchOptions& options) {
  constexpr int kSteps = 64;  // of an episode; random weights do not solve it
  EvaluationOptions evaluation;
  evaluation.policy = options.policy;
  evaluation.episodes = options.policy.batch;
  evaluation.max_steps = kSteps;
  std::vector<int> all(evaluation.episodes);
  std::iota(all.begin(), all.end(), 0);
  const std::atomic<bool> stop = false;
  // keeps the weights, and has checked them: a measured policy is made without
  const auto kept = mjp::Policy::Create(options.network, options.policy);
  mjp::PolicyOptions checked = options.policy;
  checked.self_check = false;
  EvaluationResult result;
  int64_t steps = 0;
  const std::string name =
      std::to_string(evaluation.episodes) + " episodes of " + std::to_string(kSteps) + " steps";
  BenchRows rows;
  rows.push_back(Measure("batch", name, options.seconds, 1, "control steps", [&] {
    steps = 0;
    result = Evaluate(
        PushtTask(), evaluation, mjp::Policy::Create(options.network, checked), all,
        [&](const EpisodeResult& e) { steps += e.steps; }, stop);
  }));
  rows.back().items = static_cast<double>(steps);
  rows.back().note = kept->Description();
  for (const auto& [stage, summary] : result.stages) {
    BenchRow row;
    row.suite = "batch";
    row.name = stage;
    row.n = summary.n;
    row.median = summary.median;
    row.p99 = summary.p99;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace mjp::app
