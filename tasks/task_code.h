#ifndef TASKS_TASK_CODE_H_
#define TASKS_TASK_CODE_H_

#include <memory>

#include "tasks/demonstration/task_code.h"

// What of this project's code belongs to a task file. One line for each task in task_code.cc.

namespace mjp::app {

// Starts and judgement of a file that has them in code; null: the file says them. Throws Error for
// a `task.code` that is not known.
std::unique_ptr<TaskCode> MakeTaskCode(const TaskFile& file);

bool HasExpert(const TaskFile& file);

// The expert of the task. Throws Error where there is none for this file.
std::unique_ptr<Demonstrator> MakeExpert(const TaskFile& file);

}  // namespace mjp::app

#endif  // TASKS_TASK_CODE_H_
