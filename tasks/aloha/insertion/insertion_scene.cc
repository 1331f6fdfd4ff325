#include "tasks/aloha/insertion/insertion_scene.h"

namespace mjp::app {

InsertionScene FindInsertionScene(const mjModel* model) {
  return {{FindArm(model, "left"), FindArm(model, "right")},
          {FindId(model, mjOBJ_BODY, "socket"), FindId(model, mjOBJ_BODY, "peg")},
          FindId(model, mjOBJ_GEOM, "red_peg"),
          FindId(model, mjOBJ_GEOM, "pin"),
          FindId(model, mjOBJ_GEOM, "table")};
}

InsertionSituation ReadInsertion(const InsertionScene& scene, const mjModel* model,
                                 const mjData* data) {
  InsertionSituation now = {};
  for (const int side : {kLeft, kRight}) {
    const int body = scene.bodies[side];
    now.parts[side] = FrameOf(data->xpos + 3 * body, data->xquat + 4 * body);
    now.hold[side] = ReadHold(scene.arms, scene.table, body, model, data);
  }
  for (int i = 0; i < data->ncon; ++i) {
    const int* geom = data->contact[i].geom;
    now.inserted |= (geom[0] == scene.peg && geom[1] == scene.pin) ||
                    (geom[0] == scene.pin && geom[1] == scene.peg);
  }
  now.arms = PosesOf(scene.arms, data);
  return now;
}

}  // namespace mjp::app
