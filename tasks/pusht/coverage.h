#ifndef TASKS_PUSHT_COVERAGE_H_
#define TASKS_PUSHT_COVERAGE_H_

#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// Area of the block, two rectangles of 120 x 30 and 30 x 90 pixels, in square pixels.
inline constexpr double kBlockArea = 6300;

// Area that two blocks share, square pixels, to within rounding. (x, y) pixels and angle place the
// second block in the frame of the first. 0 where an argument is not finite.
double SharedArea(double x, double y, double angle);

// Share of the goal that the block covers, in [0, 1], where the goal lies at (x, y) pixels and
// `angle`: the benchmark's, or a model's own. 0 for a state that is not finite.
double Coverage(const State& state, double goal_x = kGoalX, double goal_y = kGoalY,
                double goal_angle = kGoalAngle);

// The benchmark's score of a step: coverage / 0.95, clipped to [0, 1].
double Score(double coverage);

// The benchmark's success of a step: strictly more than 0.95.
inline bool IsSuccess(double coverage) { return coverage > kSuccessCoverage; }

}  // namespace mjp::app

#endif  // TASKS_PUSHT_COVERAGE_H_
