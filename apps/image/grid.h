#ifndef APPS_IMAGE_GRID_H_
#define APPS_IMAGE_GRID_H_

#include <span>

#include "task/video.h"

namespace pusht {

// Pictures x (count, size, size, channels), -1 to 1, beside each other in a grid about as wide as
// high, enlarged by a whole factor.
Picture MakeGrid(std::span<const float> x, int size, int channels);

}  // namespace pusht

#endif  // APPS_IMAGE_GRID_H_
