#ifndef TASKS_EVALUATION_REPORT_H_
#define TASKS_EVALUATION_REPORT_H_

#include <map>
#include <string>

#include "policy/policy.h"
#include "tasks/evaluation/evaluation.h"

namespace mjp::app {

// Figures over episodes; invalid episodes count as failures with score 0.
struct Figures {
  int episodes = 0, successes = 0, invalid = 0;
  double mean_score = 0;  // LeRobot's avg_max_reward
  double mean_sum_reward = 0;
  double mean_max_coverage = 0, mean_final_coverage = 0;
  double median_success_step = 0;  // over the successes
};
Figures Summarise(const std::map<int, EpisodeResult>& episodes);

// Key of run.json: name -> SHA-256 of every file of the checkpoint that changes an action. Results
// of earlier builds have the hash of the weights alone, under "checkpoint_sha256".
inline constexpr char kCheckpointFiles[] = "checkpoint_files";

// Everything the results depend on, as JSON, one key per line: equal text, equal episodes.
std::string RunText(const EvaluationOptions& options, const mjp::Policy& policy,
                    const std::string& version);

// eval_info.json: LeRobot's keys (per_task, per_group, overall) and this project's beside them.
std::string SummaryText(const EvaluationOptions& options, const std::string& run,
                        const std::map<int, EpisodeResult>& episodes,
                        const EvaluationResult& result);

// The table printed at the end of an evaluation.
std::string FiguresText(const Figures& figures);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_REPORT_H_
