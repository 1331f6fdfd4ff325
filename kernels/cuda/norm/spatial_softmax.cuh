#ifndef KERNELS_CUDA_NORM_SPATIAL_SOFTMAX_CUH_
#define KERNELS_CUDA_NORM_SPATIAL_SOFTMAX_CUH_

#include <cuda_runtime.h>

namespace mjp {

// Expectation of pos_grid (cells, 2) under the softmax of logits, which are `pitch` floats apart.
__device__ __forceinline__ float2 SpatialSoftmax(const float* logits, int pitch, int cells,
                                                 const float* pos_grid) {
  float largest = -INFINITY;
  for (int cell = 0; cell < cells; ++cell) largest = fmaxf(largest, logits[cell * pitch]);
  float sum = 0.0f, x = 0.0f, y = 0.0f;
  for (int cell = 0; cell < cells; ++cell) {
    const float weight = expf(logits[cell * pitch] - largest);
    sum += weight;
    x += weight * pos_grid[2 * cell];
    y += weight * pos_grid[2 * cell + 1];
  }
  return make_float2(x / sum, y / sum);
}

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_SPATIAL_SOFTMAX_CUH_
