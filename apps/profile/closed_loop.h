#ifndef APPS_PROFILE_CLOSED_LOOP_H_
#define APPS_PROFILE_CLOSED_LOOP_H_

#include <atomic>

#include "apps/profile/timeline.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/pusht/options.h"

namespace mjp::app {

// Drives `options.policy.batch` robots of Push-T from their starts through `decisions` decisions,
// on the calling thread, and adds all that happened to `timeline`: the control loop's own work, and
// the policy's stages and denoising steps on its device's clock. A decision before the first one
// warms up and is left out. Ends early once `stop` is true; returns the decisions that were added.
// Throws Error where the policy wants inputs that Push-T does not have.
int ProfileClosedLoop(const EvaluationOptions& options, RendererKind renderer, mjp::Policy& policy,
                      int decisions, const std::atomic<bool>& stop, Timeline& timeline);

}  // namespace mjp::app

#endif  // APPS_PROFILE_CLOSED_LOOP_H_
