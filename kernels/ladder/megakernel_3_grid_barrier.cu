// Rung 3: one cooperative launch. The blocks stay, and a barrier of the whole grid stands where a
// launch ended before. Nothing is set up again, but each layer waits for the slowest block of the
// one before, and for three ways to L2 and back. Values are stored, and a fence waits until L2 has
// them. A counter there is added to, and polled until the last block has come. Then the values are
// loaded.

#include <cooperative_groups.h>

#include "kernels/ladder/megakernel_layer.cuh"

namespace mjp::ladder {
namespace {

__global__ void __launch_bounds__(kChainThreads) GridBarrierKernel(const ChainArgs a) {
  __shared__ TileMemory memory;
  const OwnTile own = TileOfBlock();
  const auto buffer = [&](int i) { return a.activations + i % 2 * kChainRows * kRowWords; };
  memory.input.ClearHalo(threadIdx.x);
  for (int layer = 0; layer < a.layers; ++layer) {
    const uint32_t* from = layer == 0 ? a.x : buffer(layer - 1);
    uint32_t* to = layer + 1 == a.layers ? a.y : buffer(layer);
    for (int i = threadIdx.x; i < kRowWords; i += kChainThreads)
      memory.input.Put(0, i, from[own.row * kRowWords + i]);
    to[own.row * kRowWords + own.group * kTileWords + threadIdx.x] = RunTile(a, layer, own, memory);
    cooperative_groups::this_grid().sync();
  }
}

}  // namespace

void ChainByGridBarrier(const ChainArgs& a, cudaStream_t stream) {
  LaunchResident<GridBarrierKernel>(a, kChainThreads, 0, stream);
}

}  // namespace mjp::ladder
