#ifndef TASKS_EVALUATION_HOSTED_FAILURE_H_
#define TASKS_EVALUATION_HOSTED_FAILURE_H_

#include <mujoco/mujoco.h>

#include <string>

namespace mjp::app {

// Why a simulation's physics are not to be trusted since its last reset; "": they are.
std::string PhysicsFailure(const mjData* data);

// Why a simulation with the policy inside is not to be trusted since its last reset; "": it is.
std::string HostedFailure(const mjModel* model, const mjData* data);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_HOSTED_FAILURE_H_
