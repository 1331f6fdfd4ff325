#include "tasks/aloha/arms/hold.h"

#include <algorithm>

namespace mjp::app {

Hold ReadHold(const std::array<Arm, 2>& arms, int table, int body, const mjModel* model,
              const mjData* data) {
  Hold hold = {};
  std::array<std::array<bool, 2>, 2> finger = {};
  for (int i = 0; i < data->ncon; ++i) {
    const int* geom = data->contact[i].geom;
    const bool first = model->geom_bodyid[geom[0]] == body;
    if (!first && model->geom_bodyid[geom[1]] != body) continue;
    const int other = geom[first ? 1 : 0];
    hold.on_table |= other == table;
    for (const int side : {kLeft, kRight}) {
      for (int k = 0; k < 2; ++k) finger[side][k] |= other == arms[side].finger_geoms[k];
    }
  }
  for (const int side : {kLeft, kRight}) {
    hold.touches[side] = finger[side][0] || finger[side][1];
    hold.holds[side] = finger[side][0] && finger[side][1];
  }
  return hold;
}

std::array<ArmPose, 2> PosesOf(const std::array<Arm, 2>& arms, const mjData* data) {
  std::array<ArmPose, 2> poses;
  for (const int side : {kLeft, kRight}) {
    poses[side].angles = AnglesOf(arms[side], data->qpos);
    poses[side].opening = std::clamp(OpeningOf(arms[side], data->qpos), 0.0, 1.0);
  }
  return poses;
}

}  // namespace mjp::app
