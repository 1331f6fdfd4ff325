#ifndef POLICY_ACT_SINE_POSITIONS_H_
#define POLICY_ACT_SINE_POSITIONS_H_

#include <vector>

namespace mjp {

// The position embedding of a feature map's cells in float32, as LeRobot's ACT has it: row y *
// width
// + x of (height * width, channels) holds sines and cosines, in turn, of the cell's y in the first
// half of the channels, and of its x in the second. `channels` is a multiple of 4.
std::vector<float> SinePositions(int height, int width, int channels);

}  // namespace mjp

#endif  // POLICY_ACT_SINE_POSITIONS_H_
