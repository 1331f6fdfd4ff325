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
  SlowestDecision decision;
  for (size_t i = 0; i < mjp::kStageCount; ++i) {
    const auto& span = times.spans[i];
    if (span.end <= span.begin) continue;
    const double milliseconds = 1e3 * (span.end - span.begin);
    milliseconds_[i].push_back(milliseconds);
    if (milliseconds > decision.stage_milliseconds) {
      decision.stage = mjp::StageName(static_cast<mjp::Stage>(i));
      decision.stage_milliseconds = milliseconds;
    }
    first = std::min(first, span.begin);
    last = std::max(last, span.end);
  }
  if (last <= 0) return;
  decision.milliseconds = 1e3 * (last - first);
  decision.at = last;
  if (!decision_.empty() && decision.milliseconds > slowest_.milliseconds) slowest_ = decision;
  decision_.push_back(decision.milliseconds);
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
