#include "plugin/model/outline.h"

#include <string>

#include "base/error.h"
#include "plugin/guard.h"
#include "plugin/model/scope.h"

namespace mjp {
namespace {

thread_local int left_out = 0;

}  // namespace

Outline::Outline(const mjModel* model, int instance)
    : config(InOwnScope(model, instance, Config::FromModel(model, instance))),
      state(model, "state", config.state, config.state_map),
      environment(model, "environment", config.environment, config.environment_map),
      controls(model, config) {
  for (const std::string& camera : config.cameras) CheckCamera(model, camera);
}

PoliciesLeftOut::PoliciesLeftOut() { ++left_out; }
PoliciesLeftOut::~PoliciesLeftOut() { --left_out; }
bool PoliciesLeftOut::Now() { return left_out > 0; }

bool IsLeftOut(const mjModel* model, int instance) {
  // a policy's state is never empty
  return model->plugin_statenum[instance] == 0 && !WithinCompiler(model);
}

}  // namespace mjp
