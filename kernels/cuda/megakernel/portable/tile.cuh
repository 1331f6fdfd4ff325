#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_TILE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_TILE_CUH_

#include "kernels/cuda/megakernel/activation_loader.cuh"
#include "kernels/cuda/megakernel/mma_tile.cuh"
#include "kernels/cuda/megakernel/partial_sums.cuh"
#include "kernels/cuda/megakernel/portable/weight_ring.cuh"

// A GEMM tile of the portable kernel: of a virtual CTA, by mma.sync, from the input that arrives to
// the partial sums that are sent.

namespace mjp::megakernel {

// This lane's addresses of a tile's input in shared memory.
struct PortableInput {
  uint32_t taps;  // of the first tap
  uint32_t even;  // of the second one of three
  int position_bytes, pitch;
};

// A K block of a tile of 8 NT >= 32 columns. They are (position, row), the row fastest, so
// that taps read the same tiles of 8 columns where rows are a multiple of 8, kRowTiles tiles of
// them: then each is loaded once, and what a tap would read beyond a row's end is left out.
// Otherwise, kRowTiles 0, every tap loads its own.
template <Format F, int kTaps, bool kShortcut, int NT, int kRowTiles>
__device__ __forceinline__ void MmaManyColumns(const PortableInput& in,
                                               const PortableFragments& weights,
                                               float (&main)[NT][4], float (&shortcut)[NT][4]) {
  const auto multiply = [&](float(&acc)[4], int fragment, const uint32_t(&b)[4], int half) {
    MultiplyAccumulate<F>(acc, weights.of[fragment], b[half * 2], b[half * 2 + 1]);
  };
  constexpr int kPairBytes = 16 * kPackBytes, kMiddle = kTaps / 2;
#pragma unroll
  for (int k_step = 0; k_step < kKSteps; ++k_step) {
#pragma unroll
    for (int tap = 0; tap < (kRowTiles > 0 ? 1 : kTaps); ++tap) {
      const int position = kRowTiles > 0 ? kMiddle : kTaps == 3 ? tap / 2 : tap;
      const uint32_t at =
          (kTaps == 3 && tap == 1 ? in.even : in.taps + position * in.position_bytes) +
          k_step * 4 * in.pitch;
#pragma unroll
      for (int pair = 0; pair < NT / 2; ++pair) {
        uint32_t b[4];
        LoadMatrix4(b, at + pair * kPairBytes);
        if constexpr (kRowTiles > 0) {
#pragma unroll
          for (int t = 0; t < kTaps; ++t) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const int to = pair * 2 + half - (t - kMiddle) * kRowTiles;
              if (to >= 0 && to < NT) multiply(main[to], k_step * kTaps + t, b, half);
            }
          }
        } else {
#pragma unroll
          for (int half = 0; half < 2; ++half)
            multiply(main[pair * 2 + half], k_step * kTaps + tap, b, half);
        }
        if constexpr (kShortcut) {
          if (kRowTiles == 0 && tap != kMiddle) continue;
#pragma unroll
          for (int half = 0; half < 2; ++half)
            multiply(shortcut[pair * 2 + half], kKSteps * kTaps + k_step, b, half);
        }
      }
    }
  }
}

// The same of 8 or 16 columns: one K block is all.
template <Format F, int kTaps, bool kShortcut, int NT>
__device__ __forceinline__ void MmaFewColumns(const PortableInput& in,
                                              const PortableFragments& weights,
                                              float (&main)[NT][4], float (&shortcut)[NT][4]) {
  InputFragments<NT> x[kTaps];
  float acc[4 / NT][NT][4] = {};
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    const int position = kTaps == 3 ? tap / 2 : tap;
    x[tap].Load(kTaps == 3 && tap == 1 ? in.even : in.taps + position * in.position_bytes,
                in.pitch);
#pragma unroll
    for (int k_step = 0; k_step < kKSteps; ++k_step) {
      x[tap].template Mma<F>(acc[k_step % (4 / NT)], k_step, weights.of[k_step * kTaps + tap]);
      if constexpr (kShortcut)
        if (tap == kTaps / 2)
          x[tap].template Mma<F>(shortcut, k_step, weights.of[kKSteps * kTaps + k_step]);
    }
  }
#pragma unroll
  for (int i = 0; i < NT * 4; ++i) {
    float sum = acc[0][i / 4][i % 4];
#pragma unroll
    for (int set = 1; set < 4 / NT; ++set) sum += acc[set][i / 4][i % 4];
    main[i / 4][i % 4] = sum;
  }
}

// What the functions of a layer's tiles share.
struct PortableTiles {
  CtaState& cta;
  const Layer& layer;
  const LayerDescriptor* descriptors;  // of the CTA's first tile
  int stride, count;                   // to the next tile's; tiles
  WeightRing& ring;
  uint8_t *input, *accumulators;

  __device__ __forceinline__ int Stages() const { return layer.shape.taps + layer.shape.shortcut; }
  __device__ __forceinline__ const LayerDescriptor& At(int i) const {
    return descriptors[i * stride];
  }
  __device__ __forceinline__ ActivationLoader Loader(const LayerDescriptor& desc,
                                                     int channel0) const {
    return ActivationLoader(cta, desc, desc.source[channel0 >= desc.source_channels], threadIdx.x,
                            channel0, input);
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
__device__ __forceinline__ void MmaPortable(const PortableTiles& tiles, const LayerDescriptor& desc,
                                            PortableFragments& weights) {
  const int thread = threadIdx.x, half = WarpgroupOf(thread);
  const MmaShape shape(tiles.layer, desc, tiles.input);
  PortableInput in = {shape.input + half * 2 * shape.pitch +
                          InputFragments<(NT > 1 ? 2 : 1)>::LaneAt(shape.pitch, thread & 31),
                      0, shape.position_bytes, shape.pitch};
  in.even = in.taps + desc.even_plane * shape.position_bytes;
  float main[NT][4] = {}, shortcut[NT][4] = {};
  if constexpr (NT < 4) {
    MmaFewColumns<F, kTaps, kShortcut, NT>(in, weights, main, shortcut);
  } else {
#pragma unroll 1
    for (int done = kBlockK;; done += kBlockK) {
      MmaManyColumns<F, kTaps, kShortcut, NT, kRowTiles>(in, weights, main, shortcut);
      if (NT < 8 || done >= tiles.layer.k_slice) break;
      ActivationLoader loader = tiles.Loader(desc, desc.channel0 + done);
      loader.IssueLoads();
      weights.Load(tiles.ring, kTaps + kShortcut);
      WaitAtBarrier<kMmaBarrier>();  // all have multiplied what was there
      loader.ReceiveAll(tiles.cta.watchdog);
      WaitAtBarrier<kMmaBarrier>();
    }
  }
  using T = Storage<F>;
  PutWarpgroupPart<T, NT>(main, tiles.accumulators, thread);
  if constexpr (kShortcut) {
    WaitAtBarrier<kMmaBarrier>();
    PutWarpgroupPart<T, NT>(shortcut, tiles.input, thread);
  }
}

template <Format F, int kTaps, bool kShortcut>
__device__ __forceinline__ void MmaPortableByColumns(const PortableTiles& tiles,
                                                     const LayerDescriptor& desc,
                                                     PortableFragments& weights) {
  const int columns_log2 = desc.columns_log2;
  if (columns_log2 < 4) return MmaPortable<F, kTaps, kShortcut, 1, 0>(tiles, desc, weights);
  if (columns_log2 == 4) return MmaPortable<F, kTaps, kShortcut, 2, 0>(tiles, desc, weights);
  if constexpr (kTaps == 5) {
    const int rows_log2 = desc.rows_log2;
    if (columns_log2 == 5 && rows_log2 == 3)
      return MmaPortable<F, kTaps, kShortcut, 4, 1>(tiles, desc, weights);
    if (columns_log2 == 6 && rows_log2 == 3)
      return MmaPortable<F, kTaps, kShortcut, 8, 1>(tiles, desc, weights);
    if (columns_log2 == 6 && rows_log2 == 4)
      return MmaPortable<F, kTaps, kShortcut, 8, 2>(tiles, desc, weights);
  }
  if (columns_log2 == 5) return MmaPortable<F, kTaps, kShortcut, 4, 0>(tiles, desc, weights);
  MmaPortable<F, kTaps, kShortcut, 8, 0>(tiles, desc, weights);
}

template <Format F>
__device__ __forceinline__ void MmaPortableByTaps(const PortableTiles& tiles,
                                                  const LayerDescriptor& desc,
                                                  PortableFragments& weights) {
  switch (tiles.Stages()) {
    case 2:
      return MmaPortableByColumns<F, 2, false>(tiles, desc, weights);
    case 3:
      return MmaPortableByColumns<F, 3, false>(tiles, desc, weights);
    case 5:
      return MmaPortableByColumns<F, 5, false>(tiles, desc, weights);
    default:
      return MmaPortableByColumns<F, 5, true>(tiles, desc, weights);
  }
}

// The CTA's tiles of a layer, one after the other: receives the input, multiplies it and sends the
// partial sums. Weights are in registers, and all that does not need the input is done, before that
// is waited for; a tile is multiplied while the next one's input is on its way.
template <Format F>
__device__ __forceinline__ void RunPortableTiles(const PortableTiles& tiles, uint32_t pass) {
  int i = tiles.WithWork(0);
  if (i == tiles.count) return;
  ActivationLoader loader = tiles.Loader(tiles.At(i), tiles.At(i).channel0);
  loader.IssueLoads();
#pragma unroll 1
  for (;;) {
    const LayerDescriptor& desc = tiles.At(i);
    PortableFragments weights;
    weights.Load(tiles.ring, tiles.Stages());
    ClearHalo(desc, threadIdx.x, tiles.input);
    loader.ReceiveAll(tiles.cta.watchdog);
    WaitAtBarrier<kMmaBarrier>();
    i = tiles.WithWork(i + 1);
    if (i < tiles.count) {
      loader = tiles.Loader(tiles.At(i), tiles.At(i).channel0);
      loader.IssueLoads();
    }
    MmaPortableByTaps<F>(tiles, desc, weights);
    WaitAtBarrier<kMmaBarrier>();
    PartialSumSender<Storage<F>> sender(desc, pass, threadIdx.x);
    sender.Send(tiles.accumulators);
    if (tiles.layer.shape.shortcut) {
      sender.GoToShortcut(desc, pass, 0);
      sender.Send(tiles.input);
      WaitAtBarrier<kMmaBarrier>();  // the next input takes the shortcut's place
    }
    if (i >= tiles.count) return;
  }
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_TILE_CUH_
