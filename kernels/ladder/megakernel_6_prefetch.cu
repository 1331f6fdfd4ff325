// Rung 6: weights are prefetched across layers. They depend on nothing that is computed, so a block
// copies the next layer's 41 KB to shared memory while it waits for this layer's values. When those
// arrive, the weights are there: they are read during the exchange, not in turns with it. Each
// layer's copy goes to one of two buffers, in turn.

#include "kernels/ladder/megakernel_split_k.cuh"

namespace mjp::ladder {
namespace {

struct Memory {
  SliceWeights weights[2];
  SliceInput input;
  float2 moments[kChainWarps];
};

__global__ void __launch_bounds__(kChainThreads) PrefetchKernel(const ChainArgs a) {
  extern __shared__ __align__(16) uint8_t shared[];
  Memory& memory = *reinterpret_cast<Memory*>(shared);
  const OwnTile own = TileOfBlock();
  const Slice s = SliceOfBlock();
  SpinWatchdog watchdog(a.timed_out);
  memory.input.ClearHalo(threadIdx.x);
  PrefetchWeights(a, 0, s, memory.weights[0]);
  for (int layer = 0; layer < a.layers; ++layer) {
    PrefetchWeights(a, layer + 1, s, memory.weights[(layer + 1) % 2]);
    ReceiveInput(a, layer, 0, s, threadIdx.x, watchdog, memory.input);
    WaitCopies<1>();  // this layer's
    Sync<kMmaBarrier>();
    MultiplyAndSend(a, layer, 0, s, memory.input, [&](int tile, int block, int tap) {
      return FragmentOf(memory.weights[layer % 2], tile, block, tap);
    });
    ReceiveAndFinish(a, layer, 0, own, threadIdx.x, watchdog, memory.moments);
  }
  WaitCopies<0>();
}

}  // namespace

void ChainByPrefetch(const ChainArgs& a, cudaStream_t stream) {
  LaunchResident<PrefetchKernel>(a, kChainThreads, sizeof(Memory), stream);
}

}  // namespace mjp::ladder
