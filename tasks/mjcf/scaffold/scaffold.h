#ifndef TASKS_MJCF_SCAFFOLD_SCAFFOLD_H_
#define TASKS_MJCF_SCAFFOLD_SCAFFOLD_H_

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

namespace mjp::app {

struct ScaffoldOptions {
  std::string include;                 // the model's file, as <include> is to name it
  std::string camera;                  // of the model; empty: the policy sees no picture
  std::vector<std::string> actuators;  // names, or joints of those without one; empty: all
  std::string checkpoint;              // directory that the policy is to have
};

// A task file for `model` with everything proposed: the joints that the actuators drive as state, a
// start around the first keyframe, a success to be replaced. Throws Error where the model has not
// what was asked for, or a name that a list of words cannot have.
std::string ScaffoldText(const mjModel* model, const ScaffoldOptions& options);

}  // namespace mjp::app

#endif  // TASKS_MJCF_SCAFFOLD_SCAFFOLD_H_
