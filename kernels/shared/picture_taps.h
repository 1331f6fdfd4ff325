#ifndef KERNELS_SHARED_PICTURE_TAPS_H_
#define KERNELS_SHARED_PICTURE_TAPS_H_

#include "kernels/shared/host_device.h"

// The reduction of a 512 x 512 drawing to 96 x 96 as cv2.resize does it: bilinear, 8 bits, in
// fixed point. A picture pixel blends 2 x 2 taps, which are pixels of the drawing, sampled at
// 16/3 i + 13/6. Tap t = 0 ... 191 of an axis belongs to picture pixel t / 2. The same bits on the
// CPU and the GPU.

namespace mjp {

inline constexpr int kDrawingSize = 512;  // pixels of the drawing, both ways
inline constexpr int kReducedSize = 96;   // pixels of the picture, both ways
inline constexpr int kReducedBytes = kReducedSize * kReducedSize * 3;
inline constexpr int kTaps = 2 * kReducedSize;

// Coordinate of a tap in the drawing.
MJP_HOST_DEVICE constexpr int TapCoordinate(int tap) {
  return (32 * (tap / 2) + 13) / 6 + (tap & 1);
}

// Weight of a picture pixel's second tap, in 1/2048; the first has the rest.
MJP_HOST_DEVICE constexpr int SecondTapWeight(int pixel) {
  return pixel % 3 == 0 ? 341 : pixel % 3 == 1 ? 1024 : 1707;
}

// The blend of two rows, each already blended along x to 19 bits, in two parts: RowPart of either
// row with its weight along y, then the sum rounded.
MJP_HOST_DEVICE constexpr int BlendAlongX(int first, int second, int second_weight) {
  return first * (2048 - second_weight) + second * second_weight;
}
MJP_HOST_DEVICE constexpr int RowPart(int blended_along_x, int weight) {
  return (weight * (blended_along_x >> 4)) >> 16;
}
MJP_HOST_DEVICE constexpr int SumRows(int upper_part, int lower_part) {
  return (upper_part + lower_part + 2) >> 2;
}

}  // namespace mjp

#endif  // KERNELS_SHARED_PICTURE_TAPS_H_
