#ifndef TASKS_PUSHT_PICTURES_DRAWN_SCENE_H_
#define TASKS_PUSHT_PICTURES_DRAWN_SCENE_H_

#include <mujoco/mujoco.h>

#include <string>

namespace mjp::app {

// The first thing that makes what `camera` of `model` shows differ from what RasteriseCpu draws:
// joints, camera, lights, and every visible geom's shape, place and colour, as MuJoCo's renderer
// applies them. Empty: it draws just this model.
std::string DifferenceFromDrawn(const mjModel* model, int camera);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PICTURES_DRAWN_SCENE_H_
