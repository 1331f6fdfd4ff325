#ifndef TASKS_DEMONSTRATION_TASK_CODE_H_
#define TASKS_DEMONSTRATION_TASK_CODE_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tasks/demonstration/demonstrator.h"
#include "tasks/evaluation/task.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// Starts and judgement of a task file whose `task.code` says that they are code.
class TaskCode {
 public:
  virtual ~TaskCode() = default;

  virtual std::vector<std::string> measures() const = 0;
  // Brings `data`, of the file's model, to the start of the episode of `seed`.
  virtual void Start(uint32_t seed, mjData* data) const = 0;
  // Judges where `data` is after a control step.
  virtual void Judge(const mjData* data, StepOutcome& outcome) const = 0;
};

// What the project's code offers to a task file.
struct TaskCodeEntry {
  // For files whose `task.code` is this; else for files whose model has that name.
  bool of_code = false;
  std::string name;
  // Null: the file says itself how it starts and is judged.
  std::function<std::unique_ptr<TaskCode>(const TaskFile&)> make_code;
  // Makes who knows how to solve it. The file outlives it.
  std::function<std::unique_ptr<Demonstrator>(const TaskFile&)> make_expert;
};

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_TASK_CODE_H_
