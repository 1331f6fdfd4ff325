#ifndef TASK_RASTER_SOURCE_H_
#define TASK_RASTER_SOURCE_H_

#include "kernels/rasterise.h"
#include "task/state.h"

namespace pusht {

// The scene that RasteriseCpu draws for a state.
dp::FlatScene ToFlatScene(const State& state);

// Adds the renderer "raster" to the plugin's: Push-T drawn from its joints by RasteriseCpu, for a
// camera that shows the benchmark's picture (orthographic, the whole table, resolution 512 x 512)
// at 96 x 96. Repeated calls do nothing.
void RegisterRasterSource();

}  // namespace pusht

#endif  // TASK_RASTER_SOURCE_H_
