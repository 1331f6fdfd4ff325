#include "tasks/aloha/situation.h"

#include <algorithm>
#include <cmath>

namespace mjp::app {

CubeScene FindCubeScene(const mjModel* model) {
  return {{FindArm(model, "left"), FindArm(model, "right")},
          FindId(model, mjOBJ_GEOM, "red_box"),
          FindId(model, mjOBJ_GEOM, "table")};
}

Situation ReadSituation(const CubeScene& scene, const mjModel* model, const mjData* data) {
  Situation now = {};
  std::copy_n(data->geom_xpos + 3 * scene.cube, 3, now.cube.pos);
  mju_mat2Quat(now.cube.quat, data->geom_xmat + 9 * scene.cube);
  const int dof = model->body_dofadr[model->geom_bodyid[scene.cube]];
  now.cube_speed = mju_norm3(data->qvel + dof);
  std::array<std::array<bool, 2>, 2> finger = {};
  for (int i = 0; i < data->ncon; ++i) {
    const int* geom = data->contact[i].geom;
    if (geom[0] != scene.cube && geom[1] != scene.cube) continue;
    const int other = geom[0] == scene.cube ? geom[1] : geom[0];
    now.on_table |= other == scene.table;
    for (const int side : {kLeft, kRight}) {
      for (int k = 0; k < 2; ++k) finger[side][k] |= other == scene.arms[side].finger_geoms[k];
    }
  }
  for (const int side : {kLeft, kRight}) {
    now.touches[side] = finger[side][0] || finger[side][1];
    now.holds[side] = finger[side][0] && finger[side][1];
    now.arms[side].angles = AnglesOf(scene.arms[side], data->qpos);
    now.arms[side].opening = std::clamp(OpeningOf(scene.arms[side], data->qpos), 0.0, 1.0);
  }
  return now;
}

Grip GripOf(const Frame& cube) {
  constexpr double kUpright = 0.985;  // cosine of 10 degrees
  mjtNum axes[9];
  mju_quat2Mat(axes, cube.quat);
  int level = 0, steepest = 0;
  for (int i = 1; i < 3; ++i) {
    if (std::abs(axes[6 + i]) < std::abs(axes[6 + level])) level = i;
    if (std::abs(axes[6 + i]) > std::abs(axes[6 + steepest])) steepest = i;
  }
  // the hand opens along the level axis
  const double yaw = std::atan2(axes[3 + level], axes[level]) * 180 / mjPI - 90;
  const bool flat = std::abs(axes[6 + steepest]) > kUpright;
  return {std::remainder(yaw, flat ? 90 : 180), flat};
}

}  // namespace mjp::app
