#ifndef TASKS_DEMONSTRATION_ACTION_RANGES_H_
#define TASKS_DEMONSTRATION_ACTION_RANGES_H_

#include <mujoco/mujoco.h>

#include <span>
#include <vector>

#include "tasks/mjcf/task_file.h"

namespace mjp::app {

struct ActionRange {
  double low, high;  // the policy's units
};

// What each number of an action may be: within action_clip and what the ranges of all controls that
// it drives let through. Throws Error naming a control without either.
std::vector<ActionRange> ActionRanges(const TaskFile& file);

// The action that writes the controls of `data` again.
void ActionOf(const ControlBinding& controls, const mjData* data, std::span<mjtNum> action);

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_ACTION_RANGES_H_
