// Rung 5: split-K. In rung 4 the 16 blocks of a norm group all read the same 328 KB of weights, one
// for each row. Here the 8 blocks that own a norm group of 8 rows read it once, a slice of 64 in
// channels each: 41 KB. A block multiplies 8 rows at once and sends partial sums to the owners of
// the output tiles, who add them up. A layer is two exchanges instead of one, and an eighth of the
// weights. The price: these 8 rows wait for each other.

#include "kernels/ladder/megakernel_split_k.cuh"

namespace mjp::ladder {
namespace {

__global__ void __launch_bounds__(kChainThreads) SplitKKernel(const ChainArgs a) {
  __shared__ SliceInput input;
  __shared__ float2 moments[kChainWarps];
  const OwnTile own = TileOfBlock();
  const Slice s = SliceOfBlock();
  SpinWatchdog watchdog(a.timed_out);
  input.ClearHalo(threadIdx.x);
  for (int layer = 0; layer < a.layers; ++layer) {
    ReceiveInput(a, layer, 0, s, threadIdx.x, watchdog, input);
    Sync<kMmaBarrier>();
    MultiplyAndSend(a, layer, 0, s, input, [&](int tile, int block, int tap) {
      return __ldg(
          Fragment(a, layer, s.group * kOutTiles + tile, s.slice * kSliceBlocks + block, tap));
    });
    // its barriers also tell that nobody reads the input any more
    ReceiveAndFinish(a, layer, 0, own, threadIdx.x, watchdog, moments);
  }
}

}  // namespace

void ChainBySplitK(const ChainArgs& a, cudaStream_t stream) {
  LaunchResident<SplitKKernel>(a, kChainThreads, 0, stream);
}

}  // namespace mjp::ladder
