#ifndef KERNELS_CPU_POOL_H_
#define KERNELS_CPU_POOL_H_

#include "kernels/cpu/features.h"

// What stands between the picture encoder's convolutions and its features, channel-last.

namespace mjp::cpu {

// 3x3 maximum, stride 2, padding 1 (which never is the maximum); with `relu` of max(x, 0), which
// the larger map then needs no pass for. Computes the rows [begin, end) of y, counted map by map.
void MaxPool(const Features& x, const Features& y, bool relu, int begin, int end);

// features[n * channels + c] = mean of channel c of map n, for n in [begin, end).
void AveragePool(const Features& x, float* features, int begin, int end);

// keypoints[(n * channels + c) * 2 + {0, 1}] = expectation of pos_grid (cells, 2) under the softmax
// of channel c of map n over its cells, for n in [begin, end).
void SpatialSoftmax(const Features& logits, const float* pos_grid, float* keypoints, int begin,
                    int end);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_POOL_H_
