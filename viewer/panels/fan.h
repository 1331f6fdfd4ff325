#ifndef VIEWER_PANELS_FAN_H_
#define VIEWER_PANELS_FAN_H_

#include "viewer/panels/plot.h"
#include "viewer/snapshot.h"

namespace mjp::app {

// Draws a decision's chunk after denoising step `step`, fainter those of the steps before, and its
// samples: ways on Push-T's table, or the numbers of an action over the steps. The decision must
// have a trace.
void DrawFan(const Plot& plot, const DecisionRecord& decision, const PolicyInfo& policy, int step);

// Draws its chunk alone, which needs no trace.
void DrawChunk(const Plot& plot, const DecisionRecord& decision, const PolicyInfo& policy);

}  // namespace mjp::app

#endif  // VIEWER_PANELS_FAN_H_
