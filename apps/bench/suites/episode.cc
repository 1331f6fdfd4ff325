#include <algorithm>
#include <atomic>
#include <string>

#include "apps/bench/harness.h"
#include "apps/tasks/task_choice.h"
#include "base/error.h"
#include "tasks/evaluation/evaluation.h"

namespace mjp::app {
namespace {

BenchRow PerStep(const std::string& name, double seconds, const LoopTimes& loop, double all) {
  BenchRow row = FromTimes("episode", name, {1e3 * seconds / static_cast<double>(loop.steps)});
  row.n = static_cast<int>(loop.steps);
  row.p99 = row.median;  // a mean has no distribution
  row.note = std::to_string(static_cast<int>(100 * seconds / all + 0.5)) + " % of the time";
  return row;
}

}  // namespace

BenchRows BenchEpisode(const BenchOptions& options) {
  EvaluationOptions evaluation;
  evaluation.checkpoint = options.checkpoint;
  evaluation.policy = options.policy;
  evaluation.episodes = 2 * options.policy.batch;  // two groups: one moves while one decides
  const std::unique_ptr<Task> task =
      TaskOfFile(std::make_shared<TaskFile>(options.model), evaluation);
  evaluation.policy.scene_drawer = task->scene_drawer();
  evaluation.policy.sampler.hold_noise =
      ResolveHoldNoise(evaluation.policy.sampler, *options.network,
                       ResolveActionSteps(evaluation, options.network->config));
  std::unique_ptr<Policy> policy = Policy::Create(options.network, evaluation.policy);
  const bool device = policy->options().backend == Backend::kCuda;
  const std::atomic<bool> never = false;
  const EvaluationResult result = Evaluate(
      *task, evaluation, std::move(policy), ShardIndices(evaluation), [](const EpisodeResult&) {},
      never);
  const LoopTimes& loop = result.loop;
  const double all = result.seconds;
  BenchRows rows = {PerStep("physics and judgement", loop.physics, loop, all),
                    PerStep("pictures", loop.pictures, loop, all)};
  if (device) {
    const double busy = 1e-3 * result.stages.at("decision").total;
    rows.push_back(PerStep("policy, beside the others", busy, loop, all));
    rows.back().device = "GPU";
    rows.push_back(PerStep("idle: waiting for the policy", loop.policy, loop, all));
    rows.push_back(PerStep("idle: the policy waits", std::max(0.0, all - busy), loop, all));
    rows.back().device = "GPU";
  } else {
    rows.push_back(PerStep("policy", loop.policy, loop, all));
  }
  rows.push_back(PerStep(
      "the rest", std::max(0.0, all - loop.physics - loop.pictures - loop.policy), loop, all));
  rows.push_back(PerStep("all", all, loop, all));
  rows.back().unit = "control steps";
  return rows;
}

}  // namespace mjp::app
