#ifndef TASKS_MJCF_START_FIELD_H_
#define TASKS_MJCF_START_FIELD_H_

#include <mujoco/mujoco.h>

#include <string>

#include "tasks/mjcf/start.h"

namespace mjp::app {

struct StartFieldKind {
  const char* word;
  StartField field;
  mjtObj type;    // of what it is named by
  bool of_model;  // of mjModel, else of mjData
};

inline constexpr StartFieldKind kStartFields[] = {
    {"joint", StartField::kJoint, mjOBJ_JOINT, false},
    {"joint_velocity", StartField::kJointVelocity, mjOBJ_JOINT, false},
    {"joint_yaw", StartField::kJointYaw, mjOBJ_JOINT, false},
    {"body_pos", StartField::kBodyPos, mjOBJ_BODY, true},
    {"body_yaw", StartField::kBodyYaw, mjOBJ_BODY, true},
    {"geom_rgba", StartField::kGeomRgba, mjOBJ_GEOM, true},
    {"geom_size", StartField::kGeomSize, mjOBJ_GEOM, true},
    {"light_pos", StartField::kLightPos, mjOBJ_LIGHT, true},
    {"light_diffuse", StartField::kLightDiffuse, mjOBJ_LIGHT, true},
    {"camera_pos", StartField::kCameraPos, mjOBJ_CAMERA, true},
};

// Components that the field of object `id` has; 0: it does not have the field.
int StartFieldSize(const mjModel* model, StartField field, int id);

// Why it does not have it, where others of its kind do, and what to write, to follow upon "NAME has
// no FIELD"; or "".
std::string WhyNoStartField(const mjModel* model, StartField field, int id);

// Component `i` of a field, and its change. A yaw is 0 and is added to the orientation.
double GetStartField(const mjModel* model, const mjData* data, StartField field, int id, int i);
void SetStartField(mjModel* model, mjData* data, StartField field, int id, int i, double value);

// Makes the quaternion of a ball or free joint one of unit length where numbers of the joint before
// `end` were drawn: MuJoCo does so in a step, and a picture or a score may come first.
void NormaliseQuaternion(const mjModel* model, mjData* data, int joint, int end);

// Makes what the engine has computed of a geom's sizes true again.
void UpdateGeomBounds(mjModel* model, int geom);

}  // namespace mjp::app

#endif  // TASKS_MJCF_START_FIELD_H_
