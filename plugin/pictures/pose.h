#ifndef PLUGIN_PICTURES_POSE_H_
#define PLUGIN_PICTURES_POSE_H_

#include <mujoco/mujoco.h>

#include <span>
#include <vector>

namespace mjp {

// What a picture of a simulation is a function of: qpos, then mocap_pos, then mocap_quat.
int PoseSize(const mjModel* model);
void ReadPose(const mjModel* model, const mjData* data, std::span<mjtNum> pose);

// Puts `data` into `pose` and brings everything that is drawn up to date.
void ApplyPose(const mjModel* model, std::span<const mjtNum> pose, mjData* data);

}  // namespace mjp

#endif  // PLUGIN_PICTURES_POSE_H_
