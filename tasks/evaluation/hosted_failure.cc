#include "tasks/evaluation/hosted_failure.h"

#include "plugin/state.h"

namespace mjp::app {

std::string PhysicsFailure(const mjData* data) {
  for (const int kind : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC}) {
    if (data->warning[kind].number > 0) return "the physics diverged";
  }
  return "";
}

std::string HostedFailure(const mjModel* model, const mjData* data) {
  return mjp::PolicyFailed(model, data) ? "the policy failed" : PhysicsFailure(data);
}

}  // namespace mjp::app
