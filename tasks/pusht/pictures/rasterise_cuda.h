#ifndef TASKS_PUSHT_PICTURES_RASTERISE_CUDA_H_
#define TASKS_PUSHT_PICTURES_RASTERISE_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tasks/pusht/pictures/rasterise.h"

namespace mjp {

// Draws scenes on the GPU, the same bits as RasteriseCpu.
class CudaRasteriser {
 public:
  // Puts what never moves (walls and goal) on the current device. Not while a stream is captured.
  // Throws Error.
  CudaRasteriser();

  // Enqueues `count` scenes to rgb (count, 96, 96, 3); both in that device's memory, rgb aligned to
  // 16 bytes. Scenes are not checked: a coordinate that is not finite leaves its object out of
  // sight. May be captured in a graph. Throws Error.
  void Draw(const FlatScene* scenes, int count, uint8_t* rgb, cudaStream_t stream) const;
};

}  // namespace mjp

#endif  // TASKS_PUSHT_PICTURES_RASTERISE_CUDA_H_
