#ifndef PLUGIN_INSTANCES_H_
#define PLUGIN_INSTANCES_H_

#include <mujoco/mujoco.h>

#include <memory>

#include "plugin/policy_instance.h"

// The policies of this process, each by the simulation and the instance that it was made for. What
// an mjData keeps of a plugin is a number, and a number can be anybody's: a pickle of an MjData
// takes it along into another simulation, or another process. So it is never trusted: it is a hint
// where to look, and is set right where it is wrong.

namespace mjp {

// Keeps a new policy for `data` and `instance`, instead of one that was kept for them before, and
// writes its number. Thread-safe, as all here.
void KeepInstance(mjData* data, int instance, const mjtNum* state,
                  std::unique_ptr<PolicyInstance> policy);

// The policy of `data` and `instance`; null where none could be made. Without a lock where the
// number is right.
PolicyInstance* FindInstance(const mjData* data, int instance);

// The policy whose state begins at `state`; null where there is none. `number` is the hint.
PolicyInstance* FindInstanceOfState(const void* number, const mjtNum* state);

// Destroys the policy of `data` and `instance`, if there is one.
void DropInstance(mjData* data, int instance);

}  // namespace mjp

#endif  // PLUGIN_INSTANCES_H_
