#ifndef KERNELS_LADDER_MEGAKERNEL_ROLES_CUH_
#define KERNELS_LADDER_MEGAKERNEL_ROLES_CUH_

#include "kernels/ladder/megakernel_split_k.cuh"

// The two roles of a block's warps in rungs 7 and 8. They share no data within the block: whatever
// crosses from one role to the other does so by mail. In rung 6 the epilogue's barriers tell that
// all warps have multiplied the layer before; here kMmaBarrier alone does. So the copy of the next
// layer's weights begins behind it, and the input has a second place.

namespace mjp::ladder {

struct RoleMemory {
  SliceWeights weights[2];
  SliceInput input[2];  // in turn: the one before may still be multiplied
  float2 moments[kChainWarps];
};

// Threads 0 to 255: for each layer and row batch, receive the input, multiply, send partial sums.
template <int kBatches>
__device__ __forceinline__ void RunMmaWarps(const ChainArgs& a, RoleMemory& memory) {
  const Slice s = SliceOfBlock();
  SpinWatchdog watchdog(a.timed_out);
  for (SliceInput& input : memory.input) input.ClearHalo(threadIdx.x);
  PrefetchWeights(a, 0, s, memory.weights[0]);
  for (int layer = 0; layer < a.layers; ++layer) {
    for (int batch = 0; batch < kBatches; ++batch) {
      SliceInput& input = memory.input[(layer * kBatches + batch) % 2];
      ReceiveInput(a, layer, batch, s, threadIdx.x, watchdog, input);
      if (batch == 0) WaitCopies<0>();  // for the layer's weights
      Sync<kMmaBarrier>();              // all have multiplied the item before
      if (batch == 0) PrefetchWeights(a, layer + 1, s, memory.weights[(layer + 1) % 2]);
      MultiplyAndSend(a, layer, batch, s, input, [&](int tile, int block, int tap) {
        return FragmentOf(memory.weights[layer % 2], tile, block, tap);
      });
    }
  }
  WaitCopies<0>();
}

// Threads 256 to 511: for each layer and row batch, receive partial sums, run the epilogue,
// publish.
template <int kBatches>
__device__ __forceinline__ void RunEpilogueWarps(const ChainArgs& a, RoleMemory& memory) {
  const OwnTile own = TileOfBlock();
  SpinWatchdog watchdog(a.timed_out);
  for (int layer = 0; layer < a.layers; ++layer)
    for (int batch = 0; batch < kBatches; ++batch)
      ReceiveAndFinish(a, layer, batch, own, threadIdx.x - kChainThreads, watchdog, memory.moments);
}

template <int kBatches>
__device__ __forceinline__ void RunRoles(const ChainArgs& a, RoleMemory& memory) {
  if (threadIdx.x < kChainThreads) {
    RunMmaWarps<kBatches>(a, memory);
  } else {
    RunEpilogueWarps<kBatches>(a, memory);
  }
}

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_MEGAKERNEL_ROLES_CUH_
