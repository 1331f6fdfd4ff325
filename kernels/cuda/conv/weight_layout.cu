// The host's part of the convolution: weights in the order and format the kernel reads.

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/shared/stored_element.h"

namespace mjp {
namespace {

constexpr int kPaddedRows = 64;   // out channels are padded to this
constexpr int kStageBytes = 128;  // and each row to this

int PaddedOut(const ConvShape& s) {
  return (s.out_c + kPaddedRows - 1) / kPaddedRows * kPaddedRows;
}

size_t RowBytes(Format format, const ConvShape& s) {
  const size_t bytes = s.K() * FormatBytes(format);
  return (bytes + kStageBytes - 1) / kStageBytes * kStageBytes;
}

}  // namespace

size_t PackedConvBytes(Format format, const ConvShape& s) {
  return static_cast<size_t>(s.phases) * PaddedOut(s) * RowBytes(format, s);
}

std::vector<uint8_t> PackConvWeights(Format format, const ConvShape& s, const float* weight,
                                     int in_channels) {
  std::vector<uint8_t> packed(PackedConvBytes(format, s), 0);
  const size_t row_bytes = RowBytes(format, s), element = FormatBytes(format);
  const int taps = s.kernel_h * s.kernel_w;
  // out[2l] = w1 x[l] + w3 x[l-1]; out[2l+1] = w0 x[l+1] + w2 x[l]: taps in the order of x
  constexpr int kTransposedTap[2][2] = {{3, 1}, {2, 0}};
  for (int phase = 0; phase < s.phases; ++phase) {
    for (int o = 0; o < s.out_c; ++o) {
      uint8_t* row = packed.data() + (static_cast<size_t>(phase) * PaddedOut(s) + o) * row_bytes;
      for (int tap = 0; tap < taps; ++tap) {
        for (int i = 0; i < in_channels; ++i) {
          const size_t oi = static_cast<size_t>(o) * in_channels + i;
          const size_t io = static_cast<size_t>(i) * s.out_c + o;
          const float value =
              s.phases == 2 ? weight[io * 4 + kTransposedTap[phase][tap]] : weight[oi * taps + tap];
          StoreElement(format, value, row + (static_cast<size_t>(tap) * s.in_c + i) * element);
        }
      }
    }
  }
  return packed;
}

}  // namespace mjp
