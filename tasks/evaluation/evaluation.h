#ifndef TASKS_EVALUATION_EVALUATION_H_
#define TASKS_EVALUATION_EVALUATION_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "policy/policy.h"
#include "policy/prefix/event_replanning.h"
#include "tasks/evaluation/options.h"
#include "tasks/evaluation/task.h"
#include "tasks/results/episode.h"
#include "tasks/results/evaluation_result.h"

namespace mjp::app {

// Called after every finished episode, on the calling thread.
using EpisodeCallback = std::function<void(const EpisodeResult&)>;

// One decision of an episode; views are valid during the call.
struct Decision {
  std::span<const double> previous, state;  // one control step apart; the same at the start
  std::span<const double> action;           // (action_dim): executed between the two
  std::span<const float> chunk;             // (H, action_dim): the policy's answer
  std::span<const float> prefix;  // (rows, action_dim): the beginning of it that was held fixed
  std::span<const float> ahead;   // (latency, action_dim): executed before the chunk acts, unless
                                  // they are disturbed
};

// Called for every decision, on the calling thread.
using DecisionCallback = std::function<void(const Decision&)>;

// An evaluation whose task, options and policy fit each other.
class Evaluation {
 public:
  virtual ~Evaluation() = default;

  // Runs the episodes whose indices are in `pending`. Stops between decisions when `stop` becomes
  // true. Throws Error where something fails on the way.
  virtual EvaluationResult Run(const std::vector<int>& pending, const EpisodeCallback& on_episode,
                               const std::atomic<bool>& stop) = 0;
};

// Makes the evaluation of at most `episodes` episodes of `task`, which lives longer, as `options`
// do; `policy` was made of options.checkpoint with options.policy. Throws Error for options that
// cannot be met. `on_decision` is called where the policy runs beside the batch, not through the
// plugin.
std::unique_ptr<Evaluation> MakeEvaluation(const Task& task, const EvaluationOptions& options,
                                           std::unique_ptr<mjp::Policy> policy, size_t episodes,
                                           const DecisionCallback& on_decision = {});

// Makes the evaluation of the episodes `pending` and runs it.
EvaluationResult Evaluate(const Task& task, const EvaluationOptions& options,
                          std::unique_ptr<mjp::Policy> policy, const std::vector<int>& pending,
                          const EpisodeCallback& on_episode, const std::atomic<bool>& stop,
                          const DecisionCallback& on_decision = {});

// Actions executed per decision: the option, or what the checkpoint says. Throws Error if a chunk
// does not have so many.
int ResolveActionSteps(const EvaluationOptions& options, const mjp::PolicyConfig& config);

// Robots that the policy decides for at once: one in the plugin, else as the options say, and not
// more than there are episodes.
int ResolveBatch(const EvaluationOptions& options);

// When a new chunk is taken: the options, or what the checkpoint says.
mjp::EventReplanning::Rule RuleOf(const EvaluationOptions& options,
                                  const mjp::PolicyConfig& config);

// Control steps of an episode: the option, or what the task says.
int ResolveMaxSteps(const EvaluationOptions& options, const Task& task);

// An episode of `task` that has not begun.
EpisodeResult NewEpisode(const Task& task, int index, uint32_t seed);

// Accounts for one control step that led to `state`. Returns whether the episode goes on, which has
// at most `max_steps`.
bool AccountStep(const StepOutcome& outcome, std::span<const double> state, int max_steps,
                 EpisodeResult& result, StateHash& hash);

// The indices of this shard: i in [0, episodes) with i % shard_count == shard_index.
std::vector<int> ShardIndices(const EvaluationOptions& options);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_EVALUATION_H_
