#ifndef VIEWER_DRAWING_EMPTY_SCENE_H_
#define VIEWER_DRAWING_EMPTY_SCENE_H_

#include <mujoco/mujoco.h>

#include <string>

namespace mjp::app {

// Why a scene of `model` shows nothing, and what to do about it; empty: it shows something.
// `hidden_groups`: geoms of the groups 3 to 5 are drawn too, which MuJoCo's own options hide.
std::string WhyEmpty(const mjModel& model, bool hidden_groups);

}  // namespace mjp::app

#endif  // VIEWER_DRAWING_EMPTY_SCENE_H_
