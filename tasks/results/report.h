#ifndef TASKS_RESULTS_REPORT_H_
#define TASKS_RESULTS_REPORT_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tasks/results/episode.h"
#include "tasks/results/evaluation_result.h"

namespace mjp::app {

// Figures over episodes; invalid episodes count as failures with score 0.
struct Figures {
  int episodes = 0, successes = 0, invalid = 0;
  double mean_score = 0;  // LeRobot's avg_max_reward
  double mean_sum_reward = 0;
  std::vector<TaskMeasure> measures;     // means
  double median_success_step = 0;        // over the successes
  std::optional<Smoothness> smoothness;  // means; none where a valid episode has none
};

// `measures` names those of the task, which no episodes do not tell.
Figures Summarise(const std::map<int, EpisodeResult>& episodes,
                  const std::vector<std::string>& measures);

// The names of the measures of `episodes`; empty for none.
std::vector<std::string> MeasuresOf(const std::map<int, EpisodeResult>& episodes);

// eval_info.json: LeRobot's keys (per_task, per_group, overall) and this project's beside them.
// `run` is the text of run.json.
std::string SummaryText(const std::string& run, const std::vector<std::string>& measures,
                        const std::map<int, EpisodeResult>& episodes,
                        const EvaluationResult& result);

// Throws BadInput where the figures in `file`, the summary of CompleteResults' episodes, are not
// those that the episodes give: it was edited. What depends on the time or on videos is not
// compared.
void CheckSummary(const std::string& file, const std::string& run,
                  const std::vector<std::string>& measures,
                  const std::map<int, EpisodeResult>& episodes);

// The table printed at the end of an evaluation; `score` says what the score is the mean of.
std::string FiguresText(const Figures& figures, const std::string& score);

}  // namespace mjp::app

#endif  // TASKS_RESULTS_REPORT_H_
