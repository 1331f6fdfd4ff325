#ifndef KERNELS_RASTERISE_CUDA_H_
#define KERNELS_RASTERISE_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/rasterise.h"

namespace dp {

// Draws `count` scenes on the GPU into rgb (count, 96, 96, 3), the same bits as RasteriseCpu; both
// in device memory, rgb aligned to 4 bytes. Scenes are not checked: a coordinate that is not finite
// leaves its object out of sight. May be captured in a graph. Throws Error(kRetryable).
void RasteriseCuda(const FlatScene* scenes, int count, uint8_t* rgb, cudaStream_t stream);

}  // namespace dp

#endif  // KERNELS_RASTERISE_CUDA_H_
