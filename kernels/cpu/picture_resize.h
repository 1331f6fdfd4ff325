#ifndef KERNELS_CPU_PICTURE_RESIZE_H_
#define KERNELS_CPU_PICTURE_RESIZE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/shared/picture_taps.h"

namespace mjp {

// Reduces a 512 x 512 RGB drawing to 96 x 96 as the benchmark does: cv2.resize's bilinear
// interpolation of 8-bit pictures, two taps along each axis, in its fixed point. `row_stride` is
// the distance in bytes from a row to the one below it (negative for a bottom-up drawing, whose
// `drawing` then points at its last row). Writes rgb (96, 96, 3).
void ResizeDrawing(const uint8_t* drawing, ptrdiff_t row_stride, uint8_t* rgb);

}  // namespace mjp

#endif  // KERNELS_CPU_PICTURE_RESIZE_H_
