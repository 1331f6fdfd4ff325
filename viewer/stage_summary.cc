#include "viewer/stage_summary.h"

#include <algorithm>
#include <limits>

#include "tasks/results/statistics.h"

namespace mjp::app {

double RowMilliseconds(const mjp::StageTimes& times, int row) {
  if (row != kDecisionRow) return 1e3 * (times.spans[row].end - times.spans[row].begin);
  double first = std::numeric_limits<double>::max(), last = 0;
  for (int i = 0; i <= static_cast<int>(mjp::Stage::kFetch); ++i) {
    const mjp::StageTimes::Span& span = times.spans[i];
    if (span.end <= span.begin) continue;
    first = std::min(first, span.begin);
    last = std::max(last, span.end);
  }
  return last > first ? 1e3 * (last - first) : 0;
}

const char* RowName(int row) {
  return row == kDecisionRow ? "decision" : mjp::StageName(static_cast<mjp::Stage>(row));
}

const char* RowName(int row, const PolicyInfo& policy) {
  const bool one_pass = policy.samplers.empty() && policy.horizon > 0;
  if (row == static_cast<int>(mjp::Stage::kUpload)) return "upload";
  return one_pass && row == static_cast<int>(mjp::Stage::kDenoise) ? "network" : RowName(row);
}

bool OnDevice(const DecisionRecord& decision, mjp::Stage stage) {
  if (decision.backend != mjp::Backend::kCuda || stage >= mjp::Stage::kApply) return false;
  return decision.times[stage].begin >= decision.times[mjp::Stage::kUpload].end;
}

LogSummary Summarise(const DecisionLog& log) {
  LogSummary summary;
  for (int row = 0; row < kRowCount; ++row) {
    RowSummary& s = summary[row];
    std::vector<double> values;
    for (size_t i = 0; i < log.size(); ++i) {
      const double value = RowMilliseconds(log[i]->times, row);
      if (value <= 0) continue;
      values.push_back(value);
      if (value > s.worst) {
        s.worst = value;
        s.worst_at = static_cast<int>(i);
      }
    }
    s.n = static_cast<int>(values.size());
    s.median = Quantile(values, 0.5);
    s.p95 = Quantile(values, 0.95);
    s.p99 = Quantile(values, 0.99);
  }
  return summary;
}

std::vector<float> Histogram(const DecisionLog& log, int row, int bins, double top) {
  std::vector<float> counts(bins);
  for (const auto& decision : log) {
    const double value = RowMilliseconds(decision->times, row);
    if (value > 0) ++counts[std::min<int>(bins - 1, static_cast<int>(bins * value / top))];
  }
  return counts;
}

int CountMisses(const DecisionLog& log, double budget) {
  return static_cast<int>(std::count_if(log.begin(), log.end(), [budget](const auto& decision) {
    return RowMilliseconds(decision->times, kDecisionRow) > budget;
  }));
}

}  // namespace mjp::app
