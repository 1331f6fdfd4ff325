#ifndef KERNELS_CPU_PREPARE_H_
#define KERNELS_CPU_PREPARE_H_

#include <cstdint>
#include <vector>

#include "kernels/cpu/features.h"

// From 8-bit pictures to the encoder's input: normalise (through a table of the 256 values of each
// channel, which holds the normaliser's own float32 results), resize, crop.

namespace mjp::cpu {

// Weights of one direction of an antialiased bilinear resize: output i is the sum over k of
// weights[i * taps + k] * input[first[i] + k].
struct ResizeTaps {
  int taps = 0;
  std::vector<int> first;
  std::vector<float> weights;
};

// PyTorch's arithmetic (align_corners false, antialias true).
ResizeTaps MakeResizeTaps(int input, int output);

struct PrepareArgs {
  const uint8_t* rgb = nullptr;  // frame n at rgb + n * frame_stride: (height, width, 3)
  int64_t frame_stride = 0;
  int height = 0, width = 0;
  const float* table = nullptr;          // (3, 256)
  const ResizeTaps* resize_y = nullptr;  // null: not resized
  const ResizeTaps* resize_x = nullptr;
  int top = 0, left = 0;  // of the crop, in the (resized) picture
  Features y;             // (frames, crop height, crop width, 3)
};

// Prepares frames [begin, end). `scratch` holds 3 * height * (resized width) floats where a resize
// is asked for.
void Prepare(const PrepareArgs& args, int begin, int end, float* scratch);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_PREPARE_H_
