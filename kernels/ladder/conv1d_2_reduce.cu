// Rung 2: the block's threads share the input channels.
//
// All 128 threads work, neighbours read neighbouring weights, each weight is read once and used for
// all positions from registers; the sums are added at the end by shuffles. What remains: every
// block reads all of x for one output channel, so x moves `out` times.

#include "kernels/ladder/conv1d_tile.cuh"

namespace mjp::ladder {

void Conv1dReduce(const Conv1dArgs& a, cudaStream_t stream) {
  LaunchConv1dTile<1>(a, "reducing conv1d", stream);
}

}  // namespace mjp::ladder
