// Rung 1: a launch per layer. Each block multiplies its output tile over all in channels: 128
// blocks x 328 KB of weights. The CPU enqueues ahead, which costs nothing while a layer takes
// longer than a launch. Between two layers the GPU drains, and the next grid starts. Up to rung 4
// loading weights takes most of a layer, and hides what these rungs save.

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/ladder/megakernel_layer.cuh"

namespace mjp::ladder {
namespace {

__global__ void __launch_bounds__(kChainThreads)
    LayerKernel(const ChainArgs a, int layer, const uint32_t* from, uint32_t* to) {
  __shared__ TileMemory memory;
  const OwnTile own = TileOfBlock();
  memory.input.ClearHalo(threadIdx.x);
  WaitForPredecessor();
  for (int i = threadIdx.x; i < kRowWords; i += kChainThreads)
    memory.input.Put(0, i, from[own.row * kRowWords + i]);
  to[own.row * kRowWords + own.group * kTileWords + threadIdx.x] = RunTile(a, layer, own, memory);
}

}  // namespace

void ChainOfLaunches(const ChainArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3(kChainBlocks);
  shape.block = dim3(kChainThreads);
  for (int layer = 0; layer < a.layers; ++layer) {
    const auto buffer = [&](int i) { return a.activations + i % 2 * kChainRows * kRowWords; };
    const uint32_t* from = layer == 0 ? a.x : buffer(layer - 1);
    uint32_t* to = layer + 1 == a.layers ? a.y : buffer(layer);
    Launch(LayerKernel, shape, stream, "a layer", a, layer, from, to);
  }
}

}  // namespace mjp::ladder
