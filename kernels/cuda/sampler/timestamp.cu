// One thread reads the clock and appends. About a microsecond each, so timestamps are taken
// only where the times of single passes are wanted.

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/timestamp.cuh"

namespace mjp {
namespace {

__global__ void TimestampKernel(const TimestampList list, bool restart) {
  WaitForPredecessor();
  ReleaseSuccessor();
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  const int at = restart ? 0 : *list.count;
  if (at < list.capacity) list.times[at] = now;
  *list.count = at + 1;
}

}  // namespace

void LaunchTimestamp(const TimestampList& list, bool restart, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = shape.block = dim3(1);
  Launch(TimestampKernel, shape, stream, "timestamp", list, restart);
}

}  // namespace mjp
