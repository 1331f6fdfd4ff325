#ifndef TASKS_DEMONSTRATION_STAND_INS_H_
#define TASKS_DEMONSTRATION_STAND_INS_H_

#include <memory>

#include "tasks/demonstration/demonstrator.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// Leaves the controls as the episode starts.
std::unique_ptr<Demonstrator> MakeHold(const TaskFile& file);

// Draws a new action from its whole range now and then, every eight control steps in the mean.
std::unique_ptr<Demonstrator> MakeNoise(const TaskFile& file);

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_STAND_INS_H_
