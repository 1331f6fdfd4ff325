#ifndef IMAGE_DIFFUSION_STEP_TABLE_H_
#define IMAGE_DIFFUSION_STEP_TABLE_H_

#include <vector>

#include "policy/checkpoint/network.h"

namespace mjp {

// What the time embedding adds to a U-Net without a condition: the FiLM terms of all its blocks for
// each timestep of a schedule. Made once at load, so that a pass computes nothing of it.
struct StepTable {
  int width = 0;              // terms of all blocks together
  std::vector<int> offsets;   // where each block's terms begin: down, middle, up, as they run
  std::vector<float> values;  // (timesteps, width)
};

// Sinusoid - Linear - Mish - Linear - Mish - every block's Linear, in double precision.
StepTable MakeStepTable(const UnetWeights& unet, const std::vector<int>& timesteps);

}  // namespace mjp

#endif  // IMAGE_DIFFUSION_STEP_TABLE_H_
