#ifndef VIEWER_PANELS_WINDOW_STEPS_H_
#define VIEWER_PANELS_WINDOW_STEPS_H_

#include <imgui.h>

#include "viewer/snapshot.h"

namespace mjp::app {

// The windows of denoising steps that the passes of a decision evaluated, in an area of `size`
// screen pixels: a row for each pass, and in it the steps of its window by what became of them.
// `marked`: the step that is shown elsewhere.
void DrawWindowSteps(const DecisionRecord& decision, int steps, int marked, ImVec2 size);

// What its colours mean, below each other.
void DrawWindowLegend();

// The shares of the chunks in the action that is executed now, the oldest at the left.
void DrawShares(const std::vector<float>& shares);

}  // namespace mjp::app

#endif  // VIEWER_PANELS_WINDOW_STEPS_H_
