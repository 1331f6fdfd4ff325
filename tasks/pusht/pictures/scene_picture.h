#ifndef TASKS_PUSHT_PICTURES_SCENE_PICTURE_H_
#define TASKS_PUSHT_PICTURES_SCENE_PICTURE_H_

#include "tasks/pusht/physics/state.h"
#include "tasks/recording/video.h"

namespace mjp::app {

// Draws the scene for people: the benchmark's colours, smooth edges, any size. (x, y) is the top
// left corner in `target`, `size` the edge of the square in pixels; it must lie inside.
void DrawScene(Picture& target, const State& state, int x, int y, int size);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PICTURES_SCENE_PICTURE_H_
