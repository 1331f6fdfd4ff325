#ifndef TASKS_PUSHT_PICTURES_RASTERISE_H_
#define TASKS_PUSHT_PICTURES_RASTERISE_H_

#include <cstdint>

#include "kernels/shared/picture_taps.h"

// Draws the flat Push-T scene as the benchmark's own pictures: 96x96 RGB, row 0 at the top.
// Source of every constant: the benchmark's 512x512 drawing, sampled with OpenCV's 2-tap bilinear
// resize (docs/NUMERICS.md).

namespace mjp {

inline constexpr int kPictureSize = kReducedSize;    // pixels, both ways
inline constexpr int kPictureBytes = kReducedBytes;  // RGB, 8 bits

// One scene in world pixels (512 x 512, y down, angle in radians, clockwise on the screen).
struct FlatScene {
  float agent_x, agent_y;
  float block_x, block_y;  // origin of the block: middle of the bar's outer edge
  float block_angle;
};

// Draws `count` scenes into rgb (count, 96, 96, 3) on the calling thread. Throws Error for a scene
// that is not finite. Objects may lie anywhere, also far outside of the picture.
void RasteriseCpu(const FlatScene* scenes, int count, uint8_t* rgb);

}  // namespace mjp

#endif  // TASKS_PUSHT_PICTURES_RASTERISE_H_
