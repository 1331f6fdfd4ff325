#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_TILE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_TILE_CUH_

#include "kernels/cuda/megakernel/activation_loader.cuh"
#include "kernels/cuda/megakernel/mma_sync.cuh"
#include "kernels/cuda/megakernel/partial_sums.cuh"
#include "kernels/cuda/megakernel/portable/virtual_ctas.cuh"
#include "kernels/cuda/megakernel/portable/weight_registers.cuh"

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

// A half K block's products with its taps, from k step `begin` on. Sums of even and odd k steps are
// apart, and each is made in the order of k steps and taps, whatever the columns are. They are
// (position, row), the row fastest, so that taps read the same tiles of 8 columns where rows are a
// multiple of 8, kRowTiles tiles of them: then each is loaded once, and what a tap would read
// beyond a row's end is left out. Otherwise, kRowTiles 0, every tap loads its own.
template <Format F, int kTaps, int NT, int kRowTiles>
__device__ __forceinline__ void MmaTapsInOrder(const PortableInput& in, int begin,
                                               const HalfBlock& weights, float (&sums)[2][NT][4]) {
  constexpr int kMiddle = kTaps / 2;
#pragma unroll
  for (int i = 0; i < 2 * (kRowTiles > 0 ? 1 : kTaps); ++i) {
    const int odd = kRowTiles > 0 ? i : i / kTaps, tap = kRowTiles > 0 ? 0 : i % kTaps;
    const uint32_t at = in.Tap<kTaps>(tap) + (begin + odd) * 4 * in.pitch;
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
            MultiplyAccumulate<F>(sums[odd][to], weights[odd * kTaps + t], b[half * 2],
                                  b[half * 2 + 1]);
        }
      }
    }
  }
}

// A K block's products with the 1x1 shortcut, whose fragments are the first of `weights`.
template <Format F, int kTaps, int NT, int kRowTiles>
__device__ __forceinline__ void MmaShortcut(const PortableInput& in, const HalfBlock& weights,
                                            float (&shortcut)[NT][4]) {
#pragma unroll
  for (int k_step = 0; k_step < kKSteps; ++k_step) {
#pragma unroll
    for (int pair = 0; pair < (NT + 1) / 2; ++pair) {
      uint32_t b[4];
      LoadMatrix4(b, in.Tap<kTaps>(kRowTiles > 0 ? 0 : kTaps / 2) + k_step * 4 * in.pitch +
                         pair * 16 * kPackBytes);
#pragma unroll
      for (int half = 0; half < 2 && pair * 2 + half < NT; ++half)
        MultiplyAccumulate<F>(shortcut[pair * 2 + half], weights[k_step], b[half * 2],
                              b[half * 2 + 1]);
    }
  }
}

// What the functions of a layer's tiles share.
template <bool kTablesInShared>
struct PortableTiles {
  CtaState& cta;
  const PortableArgs& args;
  WeightRegisters& weights;
  int index;  // of the layer

  __device__ __forceinline__ const Layer& TheLayer() const {
    return OwnLayers<kTablesInShared>(args)[index];
  }
  __device__ __forceinline__ const PortableDescriptor& At(int i) const {
    return OwnDescriptors<kTablesInShared>(args)[i * args.args.layer_count + index];
  }
  __device__ __forceinline__ ActivationLoader Loader(const PortableDescriptor& desc,
                                                     int channel0) const {
    return ActivationLoader(cta, desc, desc.source[channel0 >= desc.source_channels], threadIdx.x,
                            channel0, OwnCta().input, [&](int row) { return desc.RowSlot(row); });
  }
  // The first tile from the i-th on that has work; the number of tiles if there is none.
  __device__ __forceinline__ int WithWork(int i) const {
    while (i < OwnCta().count && !At(i).has_work) ++i;
    return i;
  }
};

// All K blocks of a tile whose first one's input is there; leaves the accumulators in shared
// memory, the shortcut's in the input's place, and the loads of the stream's next first half
// issued.
template <Format F, int kTaps, bool kShortcut, int NT, int kRowTiles, typename Tiles>
__device__ __forceinline__ void MmaPortable(const Tiles& tiles, const PortableDescriptor& desc,
                                            ActivationLoader& loader) {
  const int thread = threadIdx.x, lane = thread & 31;
  const int position_bytes = kPackBytes << desc.rows_log2,
            pitch = desc.input_positions * position_bytes;
  PortableInput in = {SharedAddress(OwnCta().input) + desc.phase * position_bytes +
                          WarpgroupOf(thread) * 2 * pitch + InputFragments<2>::LaneAt(pitch, lane),
                      0, position_bytes, pitch};
  in.even = in.taps + desc.even_plane * position_bytes;
  WeightRegisters& weights = tiles.weights;
  using T = Storage<F>;
  // the shortcut's of the K blocks before: in registers, there is no room for them
  auto* kept = reinterpret_cast<float4*>(OwnCta().accumulators +
                                         2 * AccumulatorLayout<T>::Part(kMostColumns)) +
               thread;
  float sums[2][NT][4] = {}, shortcut[NT][4];
#pragma unroll 1
  for (int done = kBlockK;; done += kBlockK) {
    const bool first = kRowTiles > 0 || done == kBlockK,
               last = kRowTiles > 0 || done >= tiles.TheLayer().k_slice;
    MmaTapsInOrder<F, kTaps, NT, kRowTiles>(in, 0, weights.first, sums);
    if constexpr (!kShortcut) weights.LoadFirst();
    if constexpr (kShortcut) weights.LoadShortcut();
    MmaTapsInOrder<F, kTaps, NT, kRowTiles>(in, kKSteps / 2, weights.second, sums);
    if constexpr (kShortcut) {
#pragma unroll
      for (int t = 0; t < NT; ++t) {
        const float4 sum = first ? make_float4(0, 0, 0, 0) : kept[t * kMmaThreads];
        shortcut[t][0] = sum.x, shortcut[t][1] = sum.y;
        shortcut[t][2] = sum.z, shortcut[t][3] = sum.w;
      }
      MmaShortcut<F, kTaps, NT, kRowTiles>(in, weights.first, shortcut);
      weights.LoadFirst();
#pragma unroll
      for (int t = 0; t < NT && !last; ++t)
        kept[t * kMmaThreads] =
            make_float4(shortcut[t][0], shortcut[t][1], shortcut[t][2], shortcut[t][3]);
    }
    if (last) break;
    loader = tiles.Loader(desc, desc.channel0 + done);
    loader.IssueLoads();
    WaitAtBarrier<kMmaBarrier>();  // all have multiplied what was there
    loader.ReceiveAll(tiles.cta.watchdog);
    weights.LoadSecond();
    WaitAtBarrier<kMmaBarrier>();
  }
#pragma unroll
  for (int i = 0; i < NT * 4; ++i) sums[0][i / 4][i % 4] += sums[1][i / 4][i % 4];
  PutWarpgroupPart<T, NT>(sums[0], OwnCta().accumulators, thread);
  if constexpr (kShortcut) {
    WaitAtBarrier<kMmaBarrier>();
    PutWarpgroupPart<T, NT>(shortcut, OwnCta().input, thread);
  }
}

template <Format F, int kTaps, bool kShortcut, typename Tiles>
__device__ __forceinline__ void MmaPortableByColumns(const Tiles& tiles,
                                                     const PortableDescriptor& desc,
                                                     ActivationLoader& loader) {
  const int columns_log2 = desc.columns_log2;
  if (columns_log2 < 4) return MmaPortable<F, kTaps, kShortcut, 1, 0>(tiles, desc, loader);
  if (columns_log2 == 4) return MmaPortable<F, kTaps, kShortcut, 2, 0>(tiles, desc, loader);
  if constexpr (kTaps == 5) {
    if (desc.row_tiles == 2) return MmaPortable<F, kTaps, kShortcut, 8, 2>(tiles, desc, loader);
    if (desc.row_tiles == 1 && columns_log2 == 5)
      return MmaPortable<F, kTaps, kShortcut, 4, 1>(tiles, desc, loader);
    if (desc.row_tiles == 1) return MmaPortable<F, kTaps, kShortcut, 8, 1>(tiles, desc, loader);
  }
  if (columns_log2 == 5) return MmaPortable<F, kTaps, kShortcut, 4, 0>(tiles, desc, loader);
  MmaPortable<F, kTaps, kShortcut, 8, 0>(tiles, desc, loader);
}

template <Format F, typename Tiles>
__device__ __forceinline__ void MmaPortableByTaps(const Tiles& tiles,
                                                  const PortableDescriptor& desc,
                                                  ActivationLoader& loader) {
  const int taps = tiles.TheLayer().shape.taps;
  if (taps == 2) return MmaPortableByColumns<F, 2, false>(tiles, desc, loader);
  if (taps == 3) return MmaPortableByColumns<F, 3, false>(tiles, desc, loader);
  MmaPortableByColumns<F, 5, false>(tiles, desc, loader);
}

// The CTA's tiles of a layer, one after the other, from tile `i` on, whose input `loader` loads:
// receives the input, multiplies it and sends the partial sums; a tile is multiplied while the next
// one's input is on its way. Leaves the loads of the weights' next second half to be issued.
template <Format F, typename Tiles>
__device__ __forceinline__ void RunPortableTiles(const Tiles& tiles, uint32_t pass, int i,
                                                 ActivationLoader& loader) {
  const bool shortcut = tiles.TheLayer().shape.shortcut;
  loader.IssueLoads();
#pragma unroll 1
  for (bool receives = true;;) {
    const PortableDescriptor& desc = tiles.At(i);
    if (receives) {
      ClearHalo(desc, threadIdx.x, OwnCta().input);
      loader.ReceiveAll(tiles.cta.watchdog);
    }
    WaitAtBarrier<kMmaBarrier>();
    const int next = tiles.WithWork(i + 1);
    const bool last = next >= OwnCta().count;
    if (!last) i = next;
    receives = !last && !tiles.At(i).repeats_input;
    const auto load_input = [&] {
      loader = tiles.Loader(tiles.At(i), tiles.At(i).channel0);
      if (receives) loader.IssueLoads();
    };
    if (shortcut) {
      MmaPortableByColumns<F, 5, true>(tiles, desc, loader);
      load_input();  // before, there are no registers for it
    } else {
      // several K blocks are loaded by the same loader
      const bool ahead = tiles.TheLayer().k_slice == kBlockK;
      if (receives && ahead) load_input();
      MmaPortableByTaps<F>(tiles, desc, loader);
      if (receives && !ahead) load_input();
    }
    if (!last) tiles.weights.LoadSecond();
    WaitAtBarrier<kMmaBarrier>();
    PartialSumSender<Storage<F>> sender(desc, pass, threadIdx.x,
                                        [&](int row) { return desc.RowSlot(row); });
    sender.Send(OwnCta().accumulators);
    if (shortcut) {
      sender.GoToShortcut(desc, pass, 0);
      sender.Send(OwnCta().input);
      WaitAtBarrier<kMmaBarrier>();  // the next input takes the shortcut's place
    }
    if (last) return;
  }
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_TILE_CUH_
