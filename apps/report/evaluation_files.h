#ifndef APPS_REPORT_EVALUATION_FILES_H_
#define APPS_REPORT_EVALUATION_FILES_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tasks/results/episode.h"
#include "tasks/results/report.h"

namespace mjp::app {

// Milliseconds of one stage of a decision.
struct StageTime {
  std::string name;
  int n = 0;
  double median = 0, p99 = 0;
};

// What a results folder holds, as the report needs it.
struct EvaluationFiles {
  std::string folder, name;  // the name is short and differs from the others'
  std::string run_text;      // of run.json
  Json run;
  std::string task;
  std::map<int, EpisodeResult> episodes;  // by index
  int expected = 0;                       // episodes of the whole run
  Figures figures;
  std::map<int, std::string> videos;  // by index; complete ones alone
  std::vector<StageTime> stages;      // of eval_info.json; empty before the end
  std::optional<Json> certificate;    // certificate.json
};

// Reads the folders. Throws Error for one that holds no evaluation, and for different tasks.
std::vector<EvaluationFiles> ReadEvaluations(const std::vector<std::string>& folders);

// The stages in a trace of `mjpolicy profile --trace`. Throws Error if it is none.
std::vector<StageTime> ReadProfile(const std::string& file);

}  // namespace mjp::app

#endif  // APPS_REPORT_EVALUATION_FILES_H_
