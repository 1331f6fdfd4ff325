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
  static_cast<Hold&>(now) =
      ReadHold(scene.arms, scene.table, model->geom_bodyid[scene.cube], model, data);
  std::copy_n(data->geom_xpos + 3 * scene.cube, 3, now.cube.pos);
  mju_mat2Quat(now.cube.quat, data->geom_xmat + 9 * scene.cube);
  now.arms = PosesOf(scene.arms, data);
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
