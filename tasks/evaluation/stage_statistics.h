#ifndef TASKS_EVALUATION_STAGE_STATISTICS_H_
#define TASKS_EVALUATION_STAGE_STATISTICS_H_

#include <array>
#include <map>
#include <string>
#include <vector>

#include "policy/timing.h"
#include "tasks/results/evaluation_result.h"

namespace mjp::app {

// Collects the stage times of decisions.
class StageStatistics {
 public:
  void Add(const mjp::StageTimes& times);
  // By stage name, only stages that ran; "decision" is first to last stage.
  std::map<std::string, StageSummary> Summary() const;
  const SlowestDecision& slowest() const { return slowest_; }

 private:
  std::array<std::vector<double>, mjp::kStageCount> milliseconds_;
  std::vector<double> decision_;
  SlowestDecision slowest_;
};

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_STAGE_STATISTICS_H_
