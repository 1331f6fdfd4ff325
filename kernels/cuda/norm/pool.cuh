#ifndef KERNELS_CUDA_NORM_POOL_CUH_
#define KERNELS_CUDA_NORM_POOL_CUH_

#include <cuda_runtime_api.h>

#include "kernels/shared/format.h"

// What stands between the picture encoder's convolutions and its features, channel-last.

namespace mjp {

struct MaxPoolArgs {
  int frames = 0, in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  int channels = 0;         // a multiple of 8
  const void* x = nullptr;  // (frames, in_h, in_w, channels), storage type
  void* y = nullptr;        // (frames, out_h, out_w, channels)
};

// 3x3 maximum, stride 2, padding 1.
void LaunchMaxPool(Format format, const MaxPoolArgs& args, cudaStream_t stream);

// features[f][c] = mean of x (frames, cells, channels) over the cells.
void LaunchAveragePool(Format format, const void* x, int frames, int cells, int channels,
                       float* features, cudaStream_t stream);

// keypoints (frames, keypoints, 2), storage type: expectation of pos_grid (cells, 2) under the
// softmax of logits (frames, cells, keypoints) over the cells.
void LaunchSpatialSoftmax(Format format, const float* logits, const float* pos_grid, int frames,
                          int cells, int keypoints, void* out, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_POOL_CUH_
