// Weights of the U-Net's convolutions in the order of the mma fragments, packed by the host.

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/shared/stored_element.h"

namespace mjp {
namespace {

// Element (out channel, in channel) of a tap, from the original layouts.
float WeightAt(const NormConvShape& s, const float* weight, int o, int i, int phase, int tap) {
  // out[2l] = w1 x[l] + w3 x[l-1]; out[2l+1] = w0 x[l+1] + w2 x[l]: taps in the order of x
  constexpr int kTransposedTap[2][2] = {{3, 1}, {2, 0}};
  if (s.phases == 2)
    return weight[(static_cast<size_t>(i) * s.out_c + o) * 4 + kTransposedTap[phase][tap]];
  return weight[(static_cast<size_t>(o) * s.in_c + i) * s.taps + tap];
}

}  // namespace

size_t WeightFragmentBytes(Format format, const NormConvShape& s) {
  return size_t{1} * s.phases * s.out_c * s.in_c * (s.taps + s.shortcut) * FormatBytes(format);
}

std::vector<uint8_t> PackWeightFragments(Format format, const NormConvShape& s, const float* weight,
                                         const float* shortcut) {
  std::vector<uint8_t> packed(WeightFragmentBytes(format, s));
  const int element = static_cast<int>(FormatBytes(format));
  const int step_channels = kStepBytes / element, taps = s.taps + s.shortcut;
  uint8_t* at = packed.data();
  for (int phase = 0; phase < s.phases; ++phase) {
    for (int m0 = 0; m0 < s.out_c; m0 += 16) {
      for (int c0 = 0; c0 < s.in_c; c0 += step_channels) {
        for (int tap = 0; tap < taps; ++tap, at += kFragmentBytes) {
          // register r of lane l: row l / 4 + 8 (r & 1), bytes 16 (r / 2) + 4 (l % 4) of the step
          for (int byte = 0; byte < kFragmentBytes; byte += element) {
            const int lane = byte / 16, r = byte % 16 / 4;
            const int o = m0 + lane / 4 + 8 * (r & 1);
            const int i = c0 + (16 * (r / 2) + 4 * (lane % 4) + byte % 4) / element;
            const float value = tap < s.taps ? WeightAt(s, weight, o, i, phase, tap)
                                             : shortcut[static_cast<size_t>(o) * s.in_c + i];
            StoreElement(format, value, at + byte);
          }
        }
      }
    }
  }
  return packed;
}

}  // namespace mjp
