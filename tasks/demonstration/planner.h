#ifndef TASKS_DEMONSTRATION_PLANNER_H_
#define TASKS_DEMONSTRATION_PLANNER_H_

#include <memory>

#include "tasks/demonstration/demonstrator.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

struct SamplingOptions {
  int samples = 64;      // candidates of each control step
  double horizon = 1.5;  // seconds that are looked ahead
};

// A planner for any task file that says by elements how it is judged: predictive sampling (Howell
// et al. 2022). Each control step tries changes of the plan before in the model itself, and goes on
// with the one of the largest sum of rewards. It needs a reward that grows on the way to success.
// Throws Error where the file's rules are code, or an actuator has no range.
std::unique_ptr<Demonstrator> MakeSamplingPlanner(const TaskFile& file,
                                                  const SamplingOptions& options);

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_PLANNER_H_
