#ifndef KERNELS_CUDA_SAMPLER_TIMESTAMP_CUH_
#define KERNELS_CUDA_SAMPLER_TIMESTAMP_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace mjp {

// Readings of the device's global timer in the order they were taken, nanoseconds. Kept by kernels,
// so that they may stand inside a graph's loop, where events may not.
struct TimestampList {
  uint64_t* times = nullptr;  // (capacity)
  int* count = nullptr;       // readings taken; more than `capacity` are not kept
  int capacity = 0;
};

// Enqueues one reading, taken when all work before it is done; with `restart` it is the first.
void LaunchTimestamp(const TimestampList& list, bool restart, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_TIMESTAMP_CUH_
