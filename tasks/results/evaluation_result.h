#ifndef TASKS_RESULTS_EVALUATION_RESULT_H_
#define TASKS_RESULTS_EVALUATION_RESULT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tasks/results/episode.h"

namespace mjp::app {

// Statistics of the wall time of one stage over all decisions, milliseconds.
struct StageSummary {
  int n = 0;
  double median = 0, p99 = 0, total = 0;
};

// The decision that took longest, and the stage that was most of it. The first of a process is left
// out: it captures the graph.
struct SlowestDecision {
  double milliseconds = 0, at = 0;  // 0: there is none; at: its end on the clock of mjp::Now()
  std::string stage;
  double stage_milliseconds = 0;
};

// Where a batch's wall time went, seconds.
struct LoopTimes {
  double physics = 0, pictures = 0;  // zeros where the task does not say
  double policy = 0;                 // launching decisions and waiting for them
  int64_t steps = 0;                 // control steps of all episodes
};

// What one run of an evaluation gave.
struct EvaluationResult {
  std::vector<EpisodeResult> episodes;  // finished in this run, in order of index
  std::vector<std::string> videos;      // files written
  std::map<std::string, StageSummary> stages;
  SlowestDecision slowest;
  LoopTimes loop;
  double seconds = 0;   // wall time of this run
  std::string backend;  // as the policy describes itself
  bool interrupted = false;
};

}  // namespace mjp::app

#endif  // TASKS_RESULTS_EVALUATION_RESULT_H_
