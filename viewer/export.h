#ifndef VIEWER_EXPORT_H_
#define VIEWER_EXPORT_H_

#include <string>

#include "viewer/snapshot.h"

namespace mjp::app {

// A log of decisions as text for other programs. Times are milliseconds in CSV and JSON.

// One line per decision: seed, decision, step, passes, then every stage and the decision.
std::string LogToCsv(const DecisionLog& log);
// The same as an array of objects.
std::string LogToJson(const DecisionLog& log);
// Chrome's trace format (opens in ui.perfetto.dev): every stage of every decision and every
// network pass, microseconds since the first; the CPU, the GPU and physics each on a track.
std::string LogToTrace(const DecisionLog& log);

}  // namespace mjp::app

#endif  // VIEWER_EXPORT_H_
