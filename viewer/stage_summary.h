#ifndef VIEWER_STAGE_SUMMARY_H_
#define VIEWER_STAGE_SUMMARY_H_

#include <array>
#include <string>
#include <vector>

#include "policy/timing.h"
#include "viewer/snapshot.h"

namespace mjp::app {

// Rows of the timing table: every stage, then the decision as a whole.
inline constexpr int kDecisionRow = static_cast<int>(mjp::kStageCount);
inline constexpr int kRowCount = kDecisionRow + 1;

// Milliseconds that `row` took; 0: it did not run. The decision is the wall time from the first
// stage to the actions on the host: without apply and physics.
double RowMilliseconds(const mjp::StageTimes& times, int row);
const char* RowName(int row);  // as files have it
// For people: a network without a chain does not denoise.
const char* RowName(int row, const PolicyInfo& policy);

// Whether a stage ran on the GPU: there runs what comes after the upload, until the actions are
// on the host.
bool OnDevice(const DecisionRecord& decision, mjp::Stage stage);

// Milliseconds over all decisions of a log in which a row ran.
struct RowSummary {
  int n = 0;
  double median = 0, p95 = 0, p99 = 0, worst = 0;
  int worst_at = -1;  // index into the log
};
using LogSummary = std::array<RowSummary, kRowCount>;
LogSummary Summarise(const DecisionLog& log);

// Counts of a row's values in equal bins from 0 to `top` ms; larger values count in the last.
std::vector<float> Histogram(const DecisionLog& log, int row, int bins, double top);

// Decisions that took more than `budget` ms.
int CountMisses(const DecisionLog& log, double budget);

}  // namespace mjp::app

#endif  // VIEWER_STAGE_SUMMARY_H_
