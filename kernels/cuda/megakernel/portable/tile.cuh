#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_TILE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_TILE_CUH_

#include "kernels/cuda/megakernel/activation_loader.cuh"
#include "kernels/cuda/megakernel/mma_sync.cuh"
#include "kernels/cuda/megakernel/partial_sums.cuh"
#include "kernels/cuda/megakernel/portable/virtual_ctas.cuh"
#include "kernels/cuda/megakernel/portable/weight_ring.cuh"

// A GEMM tile of the portable kernel: of a virtual CTA, or of a pair, by mma.sync, from the input
// that arrives to the partial sums that are sent.

namespace mjp::megakernel {

// This lane's addresses of a tile's input in shared memory.
struct PortableInput {
  uint32_t taps;  // of the first tap
  uint32_t even;  // of the second one of three
  int position_bytes, pitch;

  template <int kTaps>
  __device__ __forceinline__ uint32_t Tap(int tap) const {
    return kTaps == 3 && tap == 1 ? even : taps + (kTaps == 3 ? tap / 2 : tap) * position_bytes;
  }
};

// A K block's products with its taps. Sums of even and odd k steps are apart, and each is made in
// the order of k steps and taps, whatever the columns are. They are (position, row), the row
// fastest, so that taps read the same tiles of 8 columns where rows are a multiple of 8, kRowTiles
// tiles of them: then each is loaded once, and what a tap would read beyond a row's end is left
// out. Otherwise, kRowTiles 0, every tap loads its own.
template <Format F, int kTaps, int NT, int kRowTiles, typename Weights>
__device__ __forceinline__ void MmaTapsInOrder(const PortableInput& in, Weights& weights,
                                               float (&sums)[2][NT][4]) {
  constexpr int kMiddle = kTaps / 2;
#pragma unroll 1
  for (int k_step = 0; k_step < kKSteps; k_step += 2) {
    uint32_t weight[2][kTaps][4];
#pragma unroll
    for (int i = 0; i < 2 * kTaps; ++i)
      weights.Load(k_step * kTaps + i, weight[i / kTaps][i % kTaps]);
#pragma unroll
    for (int i = 0; i < 2 * (kRowTiles > 0 ? 1 : kTaps); ++i) {
      const int odd = kRowTiles > 0 ? i : i / kTaps, tap = kRowTiles > 0 ? 0 : i % kTaps;
      const uint32_t at = in.Tap<kTaps>(tap) + (k_step + odd) * 4 * in.pitch;
#pragma unroll
      for (int pair = 0; pair < (NT + 1) / 2; ++pair) {
        uint32_t b[4];
        LoadMatrix4(b, at + pair * 16 * kPackBytes);
#pragma unroll
        for (int t = 0; t < kTaps; ++t) {
          if (kRowTiles == 0 && t != tap) continue;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int to = pair * 2 + half - (kRowTiles > 0 ? (t - kMiddle) * kRowTiles : 0);
            if (to >= 0 && to < NT)
              MultiplyAccumulate<F>(sums[odd][to], weight[odd][t], b[half * 2], b[half * 2 + 1]);
          }
        }
      }
    }
  }
}

// A K block's products with the 1x1 shortcut.
template <Format F, int kTaps, int NT, int kRowTiles, typename Weights>
__device__ __forceinline__ void MmaShortcut(const PortableInput& in, Weights& weights,
                                            float (&shortcut)[NT][4]) {
#pragma unroll 1
  for (int k_step = 0; k_step < kKSteps; ++k_step) {
    uint32_t weight[4];
    weights.Load(kKSteps * kTaps + k_step, weight);
#pragma unroll
    for (int pair = 0; pair < (NT + 1) / 2; ++pair) {
      uint32_t b[4];
      LoadMatrix4(b, in.Tap<kTaps>(kRowTiles > 0 ? 0 : kTaps / 2) + k_step * 4 * in.pitch +
                         pair * 16 * kPackBytes);
#pragma unroll
      for (int half = 0; half < 2 && pair * 2 + half < NT; ++half)
        MultiplyAccumulate<F>(shortcut[pair * 2 + half], weight, b[half * 2], b[half * 2 + 1]);
    }
  }
}

// What the functions of a layer's tiles share.
struct PortableTiles {
  CtaState& cta;
  const Layer& layer;
  const PortableDescriptor* descriptors;  // of the CTA's first tile
  int stride, count;                      // to the next tile's; tiles
  WeightRing& ring;
  uint8_t *input, *accumulators;

  __device__ __forceinline__ int Stages() const { return layer.shape.taps + layer.shape.shortcut; }
  __device__ __forceinline__ const PortableDescriptor& At(int i) const {
    return descriptors[i * stride];
  }
  __device__ __forceinline__ ActivationLoader Loader(const PortableDescriptor& desc,
                                                     int channel0) const {
    return ActivationLoader(cta, desc, desc.source[channel0 >= desc.source_channels], threadIdx.x,
                            channel0, input, [&](int row) { return desc.RowSlot(row); });
  }
  // The first tile from the i-th on that has work; `count` if there is none.
  __device__ __forceinline__ int WithWork(int i) const {
    while (i < count && !At(i).has_work) ++i;
    return i;
  }
};

// All K blocks of a tile whose first one's input and weights are there; leaves the accumulators in
// shared memory, the shortcut's in the input's place.
template <Format F, int kTaps, bool kShortcut, int NT, int kRowTiles>
__device__ __forceinline__ void MmaPortable(const PortableTiles& tiles,
                                            const PortableDescriptor& desc) {
  const int thread = threadIdx.x, lane = thread & 31, stages = kTaps + kShortcut;
  const int position_bytes = kPackBytes << desc.rows_log2,
            pitch = desc.input_positions * position_bytes;
  PortableInput in = {SharedAddress(tiles.input) + desc.phase * position_bytes +
                          WarpgroupOf(thread) * 2 * pitch + InputFragments<2>::LaneAt(pitch, lane),
                      0, position_bytes, pitch};
  in.even = in.taps + desc.even_plane * position_bytes;
  float sums[2][NT][4] = {}, shortcut[NT][4] = {};
  const auto multiply = [&](auto weights) {
    MmaTapsInOrder<F, kTaps, NT, kRowTiles>(in, weights, sums);
    if constexpr (kShortcut) MmaShortcut<F, kTaps, NT, kRowTiles>(in, weights, shortcut);
    weights.Release();
  };
#pragma unroll 1
  for (int done = kBlockK;; done += kBlockK) {
    if (tiles.ring.IsLong()) {
      multiply(BlockWeights<true>(tiles.ring));
    } else {
      multiply(BlockWeights<false>(tiles.ring));
    }
    if (NT < 8 || done >= tiles.layer.k_slice) break;
    tiles.ring.ReplaceBlock(stages);
    ActivationLoader loader = tiles.Loader(desc, desc.channel0 + done);
    loader.IssueLoads();
    tiles.ring.Await(stages);
    WaitAtBarrier<kMmaBarrier>();  // all have multiplied what was there
    loader.ReceiveAll(tiles.cta.watchdog);
    WaitAtBarrier<kMmaBarrier>();
  }
#pragma unroll
  for (int i = 0; i < NT * 4; ++i) sums[0][i / 4][i % 4] += sums[1][i / 4][i % 4];
  using T = Storage<F>;
  PutWarpgroupPart<T, NT>(sums[0], tiles.accumulators, thread);
  if constexpr (kShortcut) {
    WaitAtBarrier<kMmaBarrier>();
    PutWarpgroupPart<T, NT>(shortcut, tiles.input, thread);
  }
}

template <Format F, int kTaps, bool kShortcut>
__device__ __forceinline__ void MmaPortableByColumns(const PortableTiles& tiles,
                                                     const PortableDescriptor& desc) {
  const int columns_log2 = desc.columns_log2;
  if (columns_log2 < 4) return MmaPortable<F, kTaps, kShortcut, 1, 0>(tiles, desc);
  if (columns_log2 == 4) return MmaPortable<F, kTaps, kShortcut, 2, 0>(tiles, desc);
  if constexpr (kTaps == 5) {
    if (desc.row_tiles == 2) return MmaPortable<F, kTaps, kShortcut, 8, 2>(tiles, desc);
    if (desc.row_tiles == 1 && columns_log2 == 5)
      return MmaPortable<F, kTaps, kShortcut, 4, 1>(tiles, desc);
    if (desc.row_tiles == 1) return MmaPortable<F, kTaps, kShortcut, 8, 1>(tiles, desc);
  }
  if (columns_log2 == 5) return MmaPortable<F, kTaps, kShortcut, 4, 0>(tiles, desc);
  MmaPortable<F, kTaps, kShortcut, 8, 0>(tiles, desc);
}

template <Format F>
__device__ __forceinline__ void MmaPortableByTaps(const PortableTiles& tiles,
                                                  const PortableDescriptor& desc) {
  switch (tiles.Stages()) {
    case 2:
      return MmaPortableByColumns<F, 2, false>(tiles, desc);
    case 3:
      return MmaPortableByColumns<F, 3, false>(tiles, desc);
    case 5:
      return MmaPortableByColumns<F, 5, false>(tiles, desc);
    default:
      return MmaPortableByColumns<F, 5, true>(tiles, desc);
  }
}

// The CTA's tiles of a layer, one after the other, from tile `i` on, whose input `loader` loads:
// receives the input, multiplies it and sends the partial sums; a tile is multiplied while the next
// one's input is on its way. Leaves the last one's weights to be replaced.
template <Format F>
__device__ __forceinline__ void RunPortableTiles(const PortableTiles& tiles, uint32_t pass, int i,
                                                 ActivationLoader& loader) {
  loader.IssueLoads();
#pragma unroll 1
  for (bool receives = true;;) {
    const PortableDescriptor& desc = tiles.At(i);
    if (receives) ClearHalo(desc, threadIdx.x, tiles.input);
    tiles.ring.Await(tiles.Stages());
    if (receives) loader.ReceiveAll(tiles.cta.watchdog);
    WaitAtBarrier<kMmaBarrier>();
    i = tiles.WithWork(i + 1);
    const bool last = i >= tiles.count;
    receives = !last && !tiles.At(i).repeats_input;
    if (receives) {
      loader = tiles.Loader(tiles.At(i), tiles.At(i).channel0);
      loader.IssueLoads();
    }
    MmaPortableByTaps<F>(tiles, desc);
    if (!last) tiles.ring.ReplaceBlock(tiles.Stages());
    WaitAtBarrier<kMmaBarrier>();
    PartialSumSender<Storage<F>> sender(desc, pass, threadIdx.x,
                                        [&](int row) { return desc.RowSlot(row); });
    sender.Send(tiles.accumulators);
    if (tiles.layer.shape.shortcut) {
      sender.GoToShortcut(desc, pass, 0);
      sender.Send(tiles.input);
      WaitAtBarrier<kMmaBarrier>();  // the next input takes the shortcut's place
    }
    if (last) return;
  }
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_TILE_CUH_
