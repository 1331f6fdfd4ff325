#ifndef TASKS_DEMONSTRATION_CHECKPOINT_DEMONSTRATOR_H_
#define TASKS_DEMONSTRATION_CHECKPOINT_DEMONSTRATOR_H_

#include <map>
#include <memory>
#include <string>

#include "tasks/demonstration/demonstrator.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// Demonstrators that do what the policy in the plugin would do. `attributes` stand in place of the
// file's: its checkpoint, options of the policy. Throws Error where the plugin refuses them. To be
// called once, while no model is compiled.
DemonstratorFactory CheckpointDemonstrators(std::shared_ptr<const TaskFile> file,
                                            const std::map<std::string, std::string>& attributes);

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_CHECKPOINT_DEMONSTRATOR_H_
