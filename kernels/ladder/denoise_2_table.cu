// Rung 2: one launch; the constants of all timesteps are a table made once, so a step is a handful
// of multiply-adds per value. What remains is a launch and a read of the table that everything
// waits for: the shipped kernel (kernels/cuda/sampler/denoise.cu) gets its constants as arguments
// and writes the network's next input in the same launch.

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/ladder/denoise.cuh"

namespace mjp::ladder {
namespace {

constexpr int kThreads = 128;

__global__ void DenoiseTableKernel(const DenoiseArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.count) return;
  const DenoiseStep step = a.table[a.timestep];
  a.next[i] = Denoise(step, a.x[i], a.output[i], a.noise[i]);
}

}  // namespace

void DenoiseTable(const DenoiseArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.count + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  Launch(DenoiseTableKernel, shape, stream, "denoise with a table", a);
}

}  // namespace mjp::ladder
