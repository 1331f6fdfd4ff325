// One thread reads the clock and appends. About a microsecond per reading, so stamps are taken only
// where the passes of a loop were asked for one by one.

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/timestamp.cuh"

namespace mjp {
namespace {

__global__ void StampKernel(const StampList list, bool restart) {
  WaitForPredecessor();
  ReleaseSuccessor();
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  const int at = restart ? 0 : *list.count;
  if (at < list.capacity) list.times[at] = now;
  *list.count = at + 1;
}

}  // namespace

void LaunchStamp(const StampList& list, bool restart, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = shape.block = dim3(1);
  Launch(StampKernel, shape, stream, "stamp", list, restart);
}

}  // namespace mjp
