#include "tasks/mjcf/start_field.h"

#include <algorithm>
#include <cmath>

namespace mjp::app {
namespace {

// The number of a field where that is one of double precision; null: it is not.
mjtNum* NumberOf(mjModel* model, mjData* data, StartField field, int id) {
  switch (field) {
    case StartField::kJoint:
      return data->qpos + model->jnt_qposadr[id];
    case StartField::kJointVelocity:
      return data->qvel + model->jnt_dofadr[id];
    case StartField::kBodyPos:
      return model->body_mocapid[id] >= 0 ? data->mocap_pos + 3 * model->body_mocapid[id]
                                          : model->body_pos + 3 * id;
    case StartField::kGeomSize:
      return model->geom_size + 3 * id;
    case StartField::kLightPos:
      return model->light_pos + 3 * id;
    case StartField::kCameraPos:
      return model->cam_pos + 3 * id;
    default:
      return nullptr;
  }
}

// The same of colours; null: it is none.
float* ColourOf(mjModel* model, StartField field, int id) {
  if (field == StartField::kGeomRgba) return model->geom_rgba + 4 * id;
  return field == StartField::kLightDiffuse ? model->light_diffuse + 3 * id : nullptr;
}

// The orientation that a yaw turns.
mjtNum* OrientationOf(mjModel* model, mjData* data, StartField field, int id) {
  if (field == StartField::kJointYaw) return data->qpos + model->jnt_qposadr[id] + 3;
  return model->body_mocapid[id] >= 0 ? data->mocap_quat + 4 * model->body_mocapid[id]
                                      : model->body_quat + 4 * id;
}

// The free joint of a body; negative: none.
int FreeJointOf(const mjModel* model, int body) {
  const int joint = model->body_jntadr[body];
  return joint >= 0 && model->jnt_type[joint] == mjJNT_FREE ? joint : -1;
}

int JointSize(int type, int free, int ball) {
  if (type == mjJNT_FREE) return free;
  return type == mjJNT_BALL ? ball : 1;
}

int GeomSizes(int type) {
  switch (type) {
    case mjGEOM_SPHERE:
      return 1;
    case mjGEOM_CAPSULE:
    case mjGEOM_CYLINDER:
      return 2;
    case mjGEOM_ELLIPSOID:
    case mjGEOM_BOX:
      return 3;
    default:
      return 0;
  }
}

// ": its free joint places it: write ..."
std::string WriteTheJoint(const mjModel* model, int joint, bool yaw) {
  const std::string name = model->names + model->name_jntadr[joint];
  return ": its free joint places it: write " + std::string(yaw ? "joint_yaw " : "joint ") +
         (name.empty() ? "NAME" : name) + (yaw ? "" : "[0:3]") +
         (name.empty() ? ", and give the joint that name" : "");
}

// Whether a camera or light follows its body from where it was in the compiled model, whatever its
// place says later.
bool Tracks(int mode) { return mode == mjCAMLIGHT_TRACK || mode == mjCAMLIGHT_TRACKCOM; }

bool TracksBody(const mjModel* model, StartField field, int id) {
  return (field == StartField::kCameraPos && Tracks(model->cam_mode[id])) ||
         (field == StartField::kLightPos && Tracks(model->light_mode[id]));
}

}  // namespace

int StartFieldSize(const mjModel* model, StartField field, int id) {
  switch (field) {
    case StartField::kJoint:
      return JointSize(model->jnt_type[id], 7, 4);
    case StartField::kJointVelocity:
      return JointSize(model->jnt_type[id], 6, 3);
    case StartField::kJointYaw:
      return model->jnt_type[id] == mjJNT_FREE ? 1 : 0;
    case StartField::kBodyYaw:
      return id > 0 && FreeJointOf(model, id) < 0 ? 1 : 0;
    case StartField::kBodyPos:
      return id > 0 && FreeJointOf(model, id) < 0 ? 3 : 0;
    case StartField::kGeomRgba:
      return 4;
    case StartField::kGeomSize:
      return GeomSizes(model->geom_type[id]);
    default:
      return TracksBody(model, field, id) ? 0 : 3;
  }
}

std::string WhyNoStartField(const mjModel* model, StartField field, int id) {
  const bool yaw = field == StartField::kBodyYaw;
  if (yaw || field == StartField::kBodyPos) {
    const int joint = FreeJointOf(model, id);
    return joint < 0 ? "" : WriteTheJoint(model, joint, yaw);
  }
  if (!TracksBody(model, field, id)) return "";
  return ": by its mode, track or trackcom, it keeps the place that the file gives it; give it "
         "another mode, such as fixed";
}

double GetStartField(const mjModel* model, const mjData* data, StartField field, int id, int i) {
  auto* m = const_cast<mjModel*>(model);
  if (const mjtNum* number = NumberOf(m, const_cast<mjData*>(data), field, id)) return number[i];
  const float* colour = ColourOf(m, field, id);
  return colour ? colour[i] : 0;
}

void SetStartField(mjModel* model, mjData* data, StartField field, int id, int i, double value) {
  if (mjtNum* number = NumberOf(model, data, field, id)) {
    number[i] = value;
  } else if (float* colour = ColourOf(model, field, id)) {
    colour[i] = static_cast<float>(value);
  } else {
    const mjtNum axis[3] = {0, 0, 1};
    mjtNum turn[4], before[4];
    mjtNum* orientation = OrientationOf(model, data, field, id);
    mju_axisAngle2Quat(turn, axis, value);
    std::copy_n(orientation, 4, before);
    mju_mulQuat(orientation, turn, before);
  }
}

void NormaliseQuaternion(const mjModel* model, mjData* data, int joint, int end) {
  const int type = model->jnt_type[joint], first = type == mjJNT_FREE ? 3 : 0;
  if ((type == mjJNT_FREE || type == mjJNT_BALL) && end > first)
    mju_normalize4(data->qpos + model->jnt_qposadr[joint] + first);
}

void UpdateGeomBounds(mjModel* model, int geom) {
  const mjtNum* size = model->geom_size + 3 * geom;
  mjtNum half[3] = {size[0], size[0], size[0]};
  mjtNum radius = size[0];
  switch (model->geom_type[geom]) {
    case mjGEOM_CAPSULE:
      half[2] = radius = size[0] + size[1];
      break;
    case mjGEOM_CYLINDER:
      half[2] = size[1];
      radius = std::sqrt(size[0] * size[0] + size[1] * size[1]);
      break;
    case mjGEOM_ELLIPSOID:
      std::copy_n(size, 3, half);
      radius = std::max({size[0], size[1], size[2]});
      break;
    case mjGEOM_BOX:
      std::copy_n(size, 3, half);
      radius = mju_norm3(size);
      break;
    default:
      break;
  }
  model->geom_rbound[geom] = radius;
  std::copy_n(half, 3, model->geom_aabb + 6 * geom + 3);
}

}  // namespace mjp::app
