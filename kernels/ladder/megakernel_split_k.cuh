#ifndef KERNELS_LADDER_MEGAKERNEL_SPLIT_K_CUH_
#define KERNELS_LADDER_MEGAKERNEL_SPLIT_K_CUH_

#include "kernels/ladder/megakernel_mail.cuh"

// The two halves of a layer in rungs 5 to 8: a block multiplies 64 out channels of 8 rows over one
// slice of 64 in channels and sends partial sums; the owner of an output tile adds the 8 slices up.
// Slice s is norm group s of the layer before: the tiles of owners (r, s), r being a row.
//
// Two buffers suffice for either exchange. Sums: whoever sends sums n + 2 to owner (r, g) has slice
// s of layer n + 1. Owner (r, s) had sums n + 1 of all slices, also of slice g, before it published
// that. The sender of slice g had what (r, g) published in layer n, after it had received sums n.
// Mail: owner (r, g) publishes n + 2 after it had sums n + 2 of all slices s. Their senders had
// what owners (r, s) published in n + 1, and these had the sums of all readers of slice g of layer
// n. This holds for each row, and so for each row batch.

namespace mjp::ladder {

inline constexpr int kSliceRows = 8, kSliceChannels = kChainChannels / kChainSlices;
inline constexpr int kSliceBlocks = kSliceChannels / 16;
inline constexpr int kSliceFragments = kOutTiles * kSliceBlocks * kChainTaps;  // 41 KB

using SliceInput = ChainInput<kSliceRows, kSliceChannels>;

// What a block multiplies: out channels of norm group `group`, of rows first_row ... + 7.
struct Slice {
  int first_row, slice, group;
};
__device__ __forceinline__ Slice SliceOfBlock() {
  const int row = static_cast<int>(blockIdx.x) % kChainRows;
  return {row / kSliceRows * kSliceRows, row % kSliceRows,
          static_cast<int>(blockIdx.x) / kChainRows};
}

// Receives the input of a layer's product: word `thread` of the slice, of each of its 8 rows.
__device__ __forceinline__ void ReceiveInput(const ChainArgs& a, int layer, int batch,
                                             const Slice& s, int thread, SpinWatchdog& watchdog,
                                             SliceInput& input) {
  static_assert(kThreadWords == kSliceRows);
  const int first_row = batch * kChainRows + s.first_row,
            at = s.slice * kSliceChannels * 4 + thread;
  uint32_t words[kThreadWords];
  if (layer == 0) {
    for (int i = 0; i < kThreadWords; ++i) words[i] = a.x[(first_row + i) * kRowWords + at];
  } else {
    Receive(words, a.epoch + layer, watchdog,
            [&](int i) { return RowMail(a, layer - 1, first_row + i) + at; });
  }
  for (int i = 0; i < kThreadWords; ++i) input.Put(i, thread, words[i]);
}

// Where the partial sums of an output tile go; slices are kTileWords apart.
__device__ __forceinline__ uint64_t* SumMail(const ChainArgs& a, int layer, int row, int group) {
  const int tile = (layer % 2 * a.batches * kChainRows + row) * kChainGroups + group;
  return a.sums + static_cast<size_t>(tile) * kChainSlices * kTileWords;
}

// Multiplies the slice and sends the partial sums, as fp16, to the owners of the 8 output tiles. A
// warp has 16 out channels of 4 rows; weight(tile, block, tap) is the lane's part of a fragment.
template <typename Weight>
__device__ __forceinline__ void MultiplyAndSend(const ChainArgs& a, int layer, int batch,
                                                const Slice& s, const SliceInput& input,
                                                const Weight& weight) {
  constexpr int kWarpRows = kSliceRows / (kChainWarps / kOutTiles);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tile = warp % kOutTiles, first = warp / kOutTiles * kWarpRows;
  float sums[kWarpRows][4] = {};
  uint4 weights[kSliceBlocks * kChainTaps];  // ptxas decides how many are on their way
#pragma unroll
  for (int i = 0; i < kSliceBlocks * kChainTaps; ++i)
    weights[i] = weight(tile, i / kChainTaps, i % kChainTaps);
#pragma unroll
  for (int i = 0; i < kSliceBlocks * kChainTaps; ++i)
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r)
      MultiplyStep(sums[r], weights[i], input.at[first + r], i / kChainTaps * 16, i % kChainTaps);
  for (int r = 0; r < kWarpRows; ++r) {
    uint64_t* to = SumMail(a, layer, batch * kChainRows + s.first_row + first + r, s.group) +
                   s.slice * kTileWords + tile * 64 + lane;
    Send(to, Word(sums[r][0], sums[r][1]), a.epoch + layer + 1);
    Send(to + 32, Word(sums[r][2], sums[r][3]), a.epoch + layer + 1);
  }
}

// Receives the partial sums of the block's own tile, runs its epilogue and publishes it.
__device__ __forceinline__ void ReceiveAndFinish(const ChainArgs& a, int layer, int batch,
                                                 const OwnTile& own, int thread,
                                                 SpinWatchdog& watchdog,
                                                 float2 (&moments)[kChainWarps]) {
  static_assert(kChainSlices == kThreadWords);
  const int row = batch * kChainRows + own.row;
  const uint64_t* from = SumMail(a, layer, row, own.group) + thread;
  uint32_t words[kThreadWords];
  Receive(words, a.epoch + layer + 1, watchdog, [&](int i) { return from + i * kTileWords; });
  float2 v = make_float2(0, 0);
  for (const uint32_t word : words) v.x += Values(word).x, v.y += Values(word).y;
  Publish(a, layer, row, own.group, thread, Epilogue(a, layer, own.group, v, thread, moments));
}

// A layer's weights of a slice on their way into shared memory; a thread copies 10 x 16 bytes.
using SliceWeights = uint4[kSliceFragments * 32];
__device__ __forceinline__ void PrefetchWeights(const ChainArgs& a, int layer, const Slice& s,
                                                SliceWeights& to) {
  constexpr int kTileVectors = kSliceFragments / kOutTiles * 32;
  for (int i = threadIdx.x; layer < a.layers && i < kSliceFragments * 32; i += kChainThreads) {
    const int tile = i / kTileVectors, lane = threadIdx.x % 32;
    const uint4* from =
        Fragment(a, layer, s.group * kOutTiles + tile, s.slice * kSliceBlocks, 0) - lane;
    CopyAsync16(SharedAddress(&to[i]), from + i % kTileVectors, true);
  }
  CommitCopies();
}
// A lane's part of a fragment in shared memory.
__device__ __forceinline__ uint4 FragmentOf(const SliceWeights& weights, int tile, int block,
                                            int tap) {
  return weights[((tile * kSliceBlocks + block) * kChainTaps + tap) * 32 + threadIdx.x % 32];
}

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_MEGAKERNEL_SPLIT_K_CUH_
