#ifndef TASK_SCENE_PICTURE_H_
#define TASK_SCENE_PICTURE_H_

#include "task/state.h"
#include "task/video.h"

namespace pusht {

// Draws the scene for people: the benchmark's colours, smooth edges, any size. (x, y) is the top
// left corner in `target`, `size` the edge of the square in pixels; it must lie inside.
void DrawScene(Picture& target, const State& state, int x, int y, int size);

}  // namespace pusht

#endif  // TASK_SCENE_PICTURE_H_
