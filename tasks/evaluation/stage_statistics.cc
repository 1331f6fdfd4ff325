#include "tasks/evaluation/stage_statistics.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

StageSummary Summarise(const std::vector<double>& milliseconds) {
  return {static_cast<int>(milliseconds.size()), Quantile(milliseconds, 0.5),
          Quantile(milliseconds, 0.99),
          std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0)};
}

}  // namespace

void StageStatistics::Add(const mjp::StageTimes& times) {
  double first = std::numeric_limits<double>::max(), last = 0;
  for (size_t i = 0; i < mjp::kStageCount; ++i) {
    const auto& span = times.spans[i];
    if (span.end <= span.begin) continue;
    milliseconds_[i].push_back(1e3 * (span.end - span.begin));
    first = std::min(first, span.begin);
    last = std::max(last, span.end);
  }
  if (last > 0) decision_.push_back(1e3 * (last - first));
}

std::map<std::string, StageSummary> StageStatistics::Summary() const {
  std::map<std::string, StageSummary> summary;
  for (size_t i = 0; i < mjp::kStageCount; ++i) {
    if (milliseconds_[i].empty()) continue;
    summary[mjp::StageName(static_cast<mjp::Stage>(i))] = Summarise(milliseconds_[i]);
  }
  if (!decision_.empty()) summary["decision"] = Summarise(decision_);
  return summary;
}

}  // namespace mjp::app
