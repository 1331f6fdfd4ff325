#ifndef TASK_STAGE_STATISTICS_H_
#define TASK_STAGE_STATISTICS_H_

#include <array>
#include <map>
#include <string>
#include <vector>

#include "policy/timing.h"
#include "task/evaluation.h"

namespace pusht {

// Collects the stage times of decisions.
class StageStatistics {
 public:
  void Add(const dp::StageTimes& times);
  // By stage name, only stages that ran; "decision" is first to last stage.
  std::map<std::string, StageSummary> Summary() const;

 private:
  std::array<std::vector<double>, dp::kStageCount> milliseconds_;
  std::vector<double> decision_;
};

}  // namespace pusht

#endif  // TASK_STAGE_STATISTICS_H_
