#ifndef KERNELS_CUDA_SAMPLER_TIMESTAMP_CUH_
#define KERNELS_CUDA_SAMPLER_TIMESTAMP_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace mjp {

// Room for timestamps of the device's global timer, nanoseconds; or none.
struct TimestampSpan {
  uint64_t* times = nullptr;  // (capacity)
  int capacity = 0;
};
// Timestamps in the order they were taken. Kept by kernels, so that they may stand inside a graph's
// loop, where events may not.
struct TimestampList {
  uint64_t* times = nullptr;  // (capacity)
  int* count = nullptr;       // timestamps taken; more than `capacity` are not kept
  int capacity = 0;

  // Where timestamps after the first `skipped` stand, for kernels that place them by themselves.
  TimestampSpan After(int skipped) const {
    if (capacity <= skipped) return {};
    return {times + skipped, capacity - skipped};
  }
};

// Enqueues one timestamp, taken when all work before it is done; with `restart` it is the first.
void LaunchTimestamp(const TimestampList& list, bool restart, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_TIMESTAMP_CUH_
