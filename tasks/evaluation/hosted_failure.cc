#include "tasks/evaluation/hosted_failure.h"

#include "plugin/state.h"

namespace mjp::app {

std::string HostedFailure(const mjModel* model, const mjData* data) {
  if (mjp::PolicyFailed(model, data)) return "the policy failed";
  for (const int kind : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC}) {
    if (data->warning[kind].number > 0) return "the physics diverged";
  }
  return "";
}

}  // namespace mjp::app
