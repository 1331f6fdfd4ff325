#ifndef PLUGIN_NOTICES_H_
#define PLUGIN_NOTICES_H_

#include <mujoco/mujoco.h>

#include <string>

#include "plugin/model/binding.h"

// Warnings about what a host or a model makes of a policy, which would otherwise come with every
// step and with every copy of a simulation.

namespace mjp {

// What is said once.
enum class Notice {
  kSensorsOff,
  kActuationOff,
  kGroupOff,
  kAsleep,
  kRenderer,
  kLook,
  kStateUnits,
  kEnvironmentUnits,
  kActionUnits,
  kClamped,
  kNoScore,
  kNotRecorded
};

// True the first time that it is asked about this kind (of this cause, where there are several) and
// this instance of a model since it was compiled. Models are told apart by their names and the
// attributes of their plugins. Thread-safe.
bool FirstNotice(const mjModel* model, int instance, Notice notice, const std::string& cause = "");

// Forgets all causes of this kind: it is over.
void ForgetNotice(const mjModel* model, int instance, Notice notice);

// Forgets what was said: a model with this instance is being compiled.
void ForgetNotices(const mjModel* model, int instance);

// "instance \"policy\"", as messages name it.
std::string InstanceName(const mjModel* model, int instance);

// Says once if the model's flags keep the policy from acting. To be called after each step.
void NoticeFlags(const mjModel* model, int instance);

// The same of an actuator that the policy drives and whose group the model's options disable.
void NoticeDisabledGroups(const mjModel* model, int instance, const ControlBinding& controls);

// The same of one that moves what the engine has put to sleep: controls do not wake it.
void NoticeSleep(const mjModel* model, const mjData* data, int instance,
                 const ControlBinding& controls);

}  // namespace mjp

#endif  // PLUGIN_NOTICES_H_
