#ifndef TASKS_PUSHT_PICTURES_RASTER_SOURCE_H_
#define TASKS_PUSHT_PICTURES_RASTER_SOURCE_H_

#include "policy/pictures/picture_look.h"
#include "tasks/pusht/physics/state.h"
#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {

// The scene that RasteriseCpu draws for a state.
mjp::FlatScene ToFlatScene(const State& state);

// How RasteriseCpu draws: as the benchmark's drawing, reduced.
mjp::PictureLook RasterLook();

// Adds the renderer "raster" to the plugin's: Push-T drawn from its joints by RasteriseCpu at
// 96 x 96, for a model that shows exactly the benchmark's scene (drawn_scene.h); others are refused
// with the first difference. Repeated calls do nothing.
void RegisterRasterSource();

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PICTURES_RASTER_SOURCE_H_
