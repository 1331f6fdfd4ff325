#ifndef TASKS_PUSHT_PICTURES_RENDER_STATES_H_
#define TASKS_PUSHT_PICTURES_RENDER_STATES_H_

#include <string>

#include "base/npy.h"

namespace mjp::app {

// Draws states (N, 5: agent x, y, block x, y, angle; pixels, radians) as a policy sees them, with
// the renderer called "raster" or "mujoco". Returns 8-bit RGB (N, 96, 96, 3). Throws Error for an
// array of another shape, a row that is not finite, or a renderer that cannot run here.
NpyArray RenderStates(const NpyArray& states, const std::string& renderer);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PICTURES_RENDER_STATES_H_
