#include "kernels/cpu/picture_resize.h"

#include "kernels/shared/picture_taps.h"

namespace mjp {
namespace {

constexpr int kRowValues = kReducedSize * 3;

// Blends one row of the drawing along x to (96, 3) values of 19 bits.
void BlendRow(const uint8_t* row, int* out) {
  for (int x = 0; x < kReducedSize; ++x) {
    const uint8_t* tap = row + 3 * TapCoordinate(2 * x);
    const int weight = SecondTapWeight(x);
    for (int c = 0; c < 3; ++c) out[3 * x + c] = BlendAlongX(tap[c], tap[3 + c], weight);
  }
}

}  // namespace

void ResizeDrawing(const uint8_t* drawing, ptrdiff_t row_stride, uint8_t* rgb) {
  int upper[kRowValues], lower[kRowValues];
  for (int y = 0; y < kReducedSize; ++y) {
    const uint8_t* row = drawing + row_stride * TapCoordinate(2 * y);
    BlendRow(row, upper);
    BlendRow(row + row_stride, lower);
    const int weight = SecondTapWeight(y);
    uint8_t* out = rgb + y * kRowValues;
    for (int i = 0; i < kRowValues; ++i) {
      out[i] = static_cast<uint8_t>(
          SumRows(RowPart(upper[i], 2048 - weight), RowPart(lower[i], weight)));
    }
  }
}

}  // namespace mjp
