#ifndef APPS_IMAGE_DIFFUSION_GRID_H_
#define APPS_IMAGE_DIFFUSION_GRID_H_

#include <span>

#include "tasks/recording/video.h"

namespace mjp::app {

// Pictures x (count, size, size, channels), -1 to 1, beside each other in a grid about as wide as
// high, enlarged by a whole factor.
Picture MakeGrid(std::span<const float> x, int size, int channels);

// Throws Error if the grid of so many pictures would be more than a PNG is written of.
void CheckGrid(int count, int size);

}  // namespace mjp::app

#endif  // APPS_IMAGE_DIFFUSION_GRID_H_
