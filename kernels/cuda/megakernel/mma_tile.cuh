#ifndef KERNELS_CUDA_MEGAKERNEL_MMA_TILE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_MMA_TILE_CUH_

#include "kernels/cuda/megakernel/activation_loader.cuh"
#include "kernels/cuda/megakernel/mma_sync.cuh"
#include "kernels/cuda/megakernel/partial_sums.cuh"
#include "kernels/cuda/megakernel/weight_pipeline.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

// A CTA's GEMM tile, from the input that arrives to the accumulators in shared memory. Everything
// that does not need the input is done before it: between its arrival and the first mma it is
// stored to shared memory and nothing else.

namespace mjp::megakernel {

// Makes the input in shared memory visible to the mma; kWgmma: to wgmma.
template <bool kWgmma>
__device__ __forceinline__ void FenceAndSync() {
  if constexpr (kWgmma) FenceAsyncProxy();
  WaitAtBarrier<kMmaBarrier>();
}

// Loads the next K block of the input, from in channel `channel0` on, and its weights.
__device__ __forceinline__ void LoadNextKBlock(CtaState& cta, const LayerDescriptor& desc,
                                               int channel0, WeightPipeline& pipeline,
                                               WeightFragments& weights, uint8_t* input) {
  const ActivationSource& source = desc.source[channel0 >= desc.source_channels];
  ActivationLoader loader(cta, desc, source, pipeline.thread, channel0, input);
  loader.IssueLoads();
  weights.Load(pipeline);
  weights.PrefetchNext(pipeline);
  loader.ReceiveAll(cta.watchdog);
  FenceAndSync<true>();
}

// Receives the input of a GEMM tile, of kColumns columns (kPartial: or fewer). With one row batch
// polling begins a measured delay after the CTA published its own tile of the layer before; with
// two the loads have been issued.
template <int kRowBatches, int kColumns, bool kPartial>
__device__ __forceinline__ void ReceiveInput(ActivationLoader& loader, const LayerDescriptor& desc,
                                             SpinWatchdog& watchdog) {
  constexpr int kCount = kBlockK / kPackChannels * kColumns / kMmaThreads;
  loader.Receive<(kCount < 1 ? 1 : kCount), kPartial, (kRowBatches > 1)>(watchdog, [&] {
    if (kRowBatches > 1) return;
    WaitAtBarrier<kActivationPublished>();
    SpinCycles(desc.initial_poll_delay);
  });
}

// Accumulators have a place of their own with warp specialisation, and where shared memory has
// room. Those of a shortcut that is multiplied with its convolution take the input's place, or
// stand behind the convolution's.
__device__ __forceinline__ bool AccumulatorsReplaceInput(const uint8_t* accumulators,
                                                         const uint8_t* input) {
  return accumulators == input;
}
__device__ __forceinline__ uint8_t* ShortcutAccumulators(uint8_t* accumulators, uint8_t* input,
                                                         int others) {
  return AccumulatorsReplaceInput(accumulators, input) ? accumulators + others : input;
}

template <int kCount>
__device__ __forceinline__ void ZeroAccumulators(float (&accumulators)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) accumulators[i] = 0.0f;
}

// The shape of a GEMM tile and of its input in shared memory; read before the input is polled.
struct MmaShape {
  int packed_shape;           // columns, whether there is a shortcut, and taps: one register
  uint32_t input;             // shared address, of the tile's phase
  int position_bytes, pitch;  // between positions, and between channel blocks of 8, bytes

  __device__ __forceinline__ MmaShape(const Layer& layer, const LayerDescriptor& desc,
                                      const uint8_t* shared)
      : packed_shape(layer.shape.taps | layer.shape.shortcut << 3 | 1 << (4 + desc.columns_log2)),
        position_bytes(kPackBytes << layer.rows_log2),
        pitch(layer.padded_length * position_bytes) {
    input = SharedAddress(shared) + desc.phase * position_bytes;
  }
  __device__ __forceinline__ int Taps() const { return packed_shape & 7; }
  __device__ __forceinline__ bool HasShortcut() const { return packed_shape & 8; }
  __device__ __forceinline__ int Columns() const { return packed_shape >> 4; }
};

// Prefetches the second half of the next layer's weights during the mma: that of the last row
// batch, so that the exchanges of the first get through before; unless a shortcut follows, whose
// weights still occupy that half.
template <int kRowBatches>
__device__ __forceinline__ void PrefetchSecondHalfDuringMma(const MmaShape& shape,
                                                            const LayerDescriptor& desc, int batch,
                                                            const WeightPipeline& pipeline) {
  if constexpr (kRowBatches == 0) {
    pipeline.PrefetchSecondHalf();
  } else if (batch + 1 == kRowBatches && !shape.HasShortcut()) {
    pipeline.PrefetchSecondHalf(desc.next_weights);
  }
}

// A K block's taps by wgmma from `input` on, an address in the form Tile; the second of three is
// at position `even_plane`. Begins the products, which CommitWgmma ends.
template <Format F, int kTaps, typename Tile, int kCount>
__device__ __forceinline__ void MmaWgmmaTaps(Tile input, int even_plane, int position_bytes,
                                             int pitch, const WeightFragments& weights,
                                             float (&main)[kCount]) {
  BeginWgmma();
#pragma unroll
  for (int k_step = 0; k_step < kKSteps; ++k_step) {
    const Tile at = input + k_step * (4 * pitch >> 4);
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      const int position = kTaps == 3 ? (tap == 1 ? even_plane : tap / 2) : tap;
      Wgmma<F>(main, weights.main[k_step * kTaps + tap],
               WgmmaPlainAt(at + (position * position_bytes >> 4)));
    }
  }
  CommitWgmma();
}

// The 1x1 of a K block by wgmma from `input` on, whose weights are loaded here.
template <Format F, typename Tile, int kCount>
__device__ __forceinline__ void MmaWgmmaShortcut(Tile input, int pitch,
                                                 const WeightPipeline& pipeline, bool clear,
                                                 float (&shortcut)[kCount]) {
  uint32_t weight[kKSteps][4];
#pragma unroll
  for (int i = 0; i < kKSteps; ++i) LoadFragment(weight[i], pipeline.Fragment(kKSteps * 5 + i));
  if (clear) ZeroAccumulators(shortcut);
  BeginWgmma();
#pragma unroll
  for (int k_step = 0; k_step < kKSteps; ++k_step)
    Wgmma<F>(shortcut, weight[k_step], WgmmaPlainAt(input + k_step * (4 * pitch >> 4)));
  CommitWgmma();
  WaitWgmma<0>();
}

// A GEMM tile of 8 NT columns by wgmma; each of the two warpgroups has half of the in channels.
// Column n is (position, row), the row fastest. kManyKBlocks: the K slice is several K blocks, of
// which the input at `shared` holds one at a time. kShortcut: multiplies the 1x1 as well. Leaves
// the accumulators of each warpgroup in shared memory.
template <Format F, int kRowBatches, int kTaps, bool kShortcut, int NT, bool kManyKBlocks>
__device__ __forceinline__ void MmaWgmmaTile(const MmaShape& shape, ActivationLoader& loader,
                                             CtaState& cta, const Layer& layer,
                                             const LayerDescriptor& desc, int batch,
                                             WeightPipeline& pipeline, WeightFragments& weights,
                                             uint8_t* shared, uint8_t* accumulators) {
#ifdef MJP_HAVE_WGMMA
  constexpr bool kWarpSpecialized = kRowBatches > 0;
  const int position_bytes = shape.position_bytes, pitch = shape.pitch,
            half = WarpgroupOf(pipeline.thread);
  const uint32_t first = shape.input + half * 2 * pitch;
  // 32 bits are ready sooner; without warp specialisation they would cost registers
  using Tile = std::conditional_t<kWarpSpecialized, uint32_t, uint64_t>;
  Tile input = kWarpSpecialized ? WgmmaPlainStart(first, pitch) : WgmmaPlainTile(first, pitch);
  int even_plane = kWarpSpecialized ? desc.even_plane : 0;
  if constexpr (kWarpSpecialized) PinRegister(input);
  if constexpr (kWarpSpecialized && kTaps == 3) PinRegister(even_plane);
  float main[NT * 4] = {}, shortcut[kShortcut ? NT * 4 : 4];
  if constexpr (kManyKBlocks) ZeroAccumulators(shortcut);  // otherwise later, for registers
  if constexpr (kWarpSpecialized)
    ReceiveInput<kRowBatches, NT * 8 * (kTaps == 3 ? 2 : 1), NT == 1>(loader, desc, cta.watchdog);
  FenceAndSync<true>();
#pragma unroll 1
  for (int done = kBlockK;; done += kBlockK) {
    MmaWgmmaTaps<F, kTaps>(input, kWarpSpecialized ? even_plane : desc.even_plane, position_bytes,
                           pitch, weights, main);
    if (!kShortcut) PrefetchSecondHalfDuringMma<kRowBatches>(shape, desc, batch, pipeline);
    WaitWgmma<0>();
    if constexpr (kShortcut) {
      MmaWgmmaShortcut<F>(input + (layer.halo * position_bytes >> 4), pitch, pipeline,
                          !kManyKBlocks, shortcut);
      __syncwarp();
      pipeline.PrefetchSecondHalf();
    }
    // where the accumulators, or the next K block, take the input's place
    if (kManyKBlocks || kShortcut ||
        (!kWarpSpecialized && AccumulatorsReplaceInput(accumulators, shared)))
      WaitAtBarrier<kMmaBarrier>();
    if (!kManyKBlocks || done == layer.k_slice) break;
    LoadNextKBlock(cta, desc, desc.channel0 + done, pipeline, weights, shared);
  }
  using T = Storage<F>;
  const auto put = [&](const float* acc, uint8_t* to) {
    PutWarpgroupPart<T, NT>(*reinterpret_cast<const float(*)[NT][4]>(acc), to, pipeline.thread);
  };
  put(main, accumulators);
  if constexpr (kShortcut)
    put(shortcut,
        ShortcutAccumulators(accumulators, shared, 2 * AccumulatorLayout<T>::Part(NT * 8)));
#else
  __trap();
#endif
}

// Puts a warp's accumulators of a CTA-local layer: of 16 columns those of MmaShiftAccumulate.
template <int NT>
__device__ __forceinline__ void PutLocalAccumulators(const float (&acc)[NT][4], float* part, int m,
                                                     int lane) {
  if constexpr (NT == 2) {
    PutShiftAccumulated(acc, part, kAccumulatorPitch, m, lane);
  } else {
    PutAccumulators<NT>(acc, part, kAccumulatorPitch, m, lane);
  }
}

// A GEMM tile of up to 16 columns by mma.sync, NT 1 or 2. kCtaLocal: of the CTA's own output
// tile, one row; its accumulators are float32, of each warpgroup [column][half of K][out channel].
template <Format F, int kRowBatches, int kTaps, bool kShortcut, int NT, bool kCtaLocal>
__device__ __forceinline__ void MmaSyncTile(const MmaShape& shape, ActivationLoader& loader,
                                            CtaState& cta, const Layer& layer,
                                            const LayerDescriptor& desc, int batch,
                                            WeightPipeline& pipeline,
                                            const WeightFragments& weights, uint8_t* shared,
                                            uint8_t* accumulators) {
  constexpr bool kShiftAccumulate = kCtaLocal && NT == 2;
  constexpr bool kWarpSpecialized = kRowBatches > 0;
  const int position_bytes = shape.position_bytes, pitch = shape.pitch, thread = pipeline.thread;
  const int lane = thread & 31, half = WarpgroupOf(thread);
  uint32_t input = shape.input + half * 2 * pitch;
  if constexpr (kCtaLocal) input += KHalfOf(thread) * (kBlockK / kPackChannels) * pitch;
  input += kShiftAccumulate
               ? layer.halo * position_bytes + InputFragments<NT>::LaneAtRow(pitch, lane)
               : InputFragments<NT>::LaneAt(pitch, lane);
  uint32_t even_plane = input + desc.even_plane * position_bytes;
  if constexpr (kWarpSpecialized) PinRegister(input);
  if constexpr (kWarpSpecialized && kTaps == 3) PinRegister(even_plane);
  float main[NT][4], shortcut[NT][4] = {};
  if constexpr (kWarpSpecialized)
    ReceiveInput<kRowBatches, NT * 8 * (kTaps == 3 ? 2 : 1) * (kCtaLocal ? 2 : 1),
                 NT == 1 && !kCtaLocal>(loader, desc, cta.watchdog);
  FenceAndSync<false>();
  if (!kShortcut) PrefetchSecondHalfDuringMma<kRowBatches>(shape, desc, batch, pipeline);
  if constexpr (kShiftAccumulate) {
    MmaShiftAccumulate<F>(input, pitch, lane, weights.main, main);
  } else {
    MmaTaps<F, kTaps, kShortcut>(input, even_plane, position_bytes, pitch, weights.main,
                                 pipeline.Fragment(kKSteps * 5), main, shortcut);
  }
  if constexpr (kShortcut) {
    __syncwarp();
    pipeline.PrefetchSecondHalf();
  }
  if (kShortcut || (!kWarpSpecialized && AccumulatorsReplaceInput(accumulators, shared)))
    WaitAtBarrier<kMmaBarrier>();
  using T = Storage<F>;
  if constexpr (kCtaLocal) {
    float* part = reinterpret_cast<float*>(accumulators) + half * kLocalPart;
    PutLocalAccumulators(main, part, FirstChannelOfWarp(thread), lane);
  } else {
    PutWarpgroupPart<T, NT>(main, accumulators, thread);
  }
  if constexpr (kShortcut)
    PutWarpgroupPart<T, NT>(
        shortcut, ShortcutAccumulators(accumulators, shared, 2 * AccumulatorLayout<T>::Part(16)),
        thread);
}

template <Format F, int kRowBatches, int kTaps, bool kShortcut, typename... Args>
__device__ __forceinline__ void MmaByColumns(const MmaShape& shape, ActivationLoader& loader,
                                             CtaState& cta, const Layer& layer,
                                             const LayerDescriptor& desc, Args&... args) {
  const int columns = shape.Columns();
  if constexpr (kRowBatches == 0 && kTaps != 3) {
    if (layer.k_slice > kBlockK)
      return MmaWgmmaTile<F, kRowBatches, kTaps, kShortcut, 8, true>(shape, loader, cta, layer,
                                                                     desc, args...);
  }
  if (columns == 64)
    return MmaWgmmaTile<F, kRowBatches, kTaps, kShortcut, 8, false>(shape, loader, cta, layer, desc,
                                                                    args...);
  if (columns == 32)
    return MmaWgmmaTile<F, kRowBatches, kTaps, kShortcut, 4, false>(shape, loader, cta, layer, desc,
                                                                    args...);
  if (columns < 16)
    return MmaSyncTile<F, kRowBatches, kTaps, kShortcut, 1, false>(shape, loader, cta, layer, desc,
                                                                   args...);
  MmaSyncTile<F, kRowBatches, kTaps, kShortcut, 2, false>(shape, loader, cta, layer, desc, args...);
}

// The GEMM tile of a CTA-local layer.
template <Format F, int kRowBatches, typename... Args>
__device__ __forceinline__ void MmaCtaLocal(const MmaShape& shape, Args&... args) {
  if (shape.Taps() == 3) {
    MmaSyncTile<F, kRowBatches, 3, false, 1, true>(shape, args...);
  } else if (shape.Columns() == 8) {
    MmaSyncTile<F, kRowBatches, 5, false, 1, true>(shape, args...);
  } else {
    MmaSyncTile<F, kRowBatches, 5, false, 2, true>(shape, args...);
  }
}

// A GEMM tile without its shortcut. With warp specialisation it receives the input; otherwise that
// is in shared memory already.
template <Format F, int kRowBatches, typename... Args>
__device__ __forceinline__ void MmaByTaps(const MmaShape& shape, Args&... args) {
  if (shape.Taps() == 5) {
    MmaByColumns<F, kRowBatches, 5, false>(shape, args...);
  } else if (shape.Taps() == 3) {
    MmaByColumns<F, kRowBatches, 3, false>(shape, args...);
  } else {
    MmaByColumns<F, kRowBatches, 2, false>(shape, args...);
  }
}

// The shortcut of a GEMM tile, 8 NT columns, once the convolution's partial sums have been sent;
// its accumulators take their place. last: of the row batches; prefetches the second half of
// `next`.
template <Format F, int NT>
__device__ __forceinline__ void MmaShortcutTile(const MmaShape& shape, const Layer& layer,
                                                bool last, WeightPipeline& pipeline,
                                                const WeightTile& next, uint8_t* accumulators) {
#ifdef MJP_HAVE_WGMMA
  const int pitch = shape.pitch, lane = pipeline.thread & 31, half = WarpgroupOf(pipeline.thread);
  const uint32_t input = shape.input + half * 2 * pitch + layer.halo * shape.position_bytes;
  uint32_t weight[kKSteps][4];
#pragma unroll
  for (int i = 0; i < kKSteps; ++i) LoadFragment(weight[i], pipeline.Fragment(kKSteps * 5 + i));
  float acc[NT][4] = {};
  if constexpr (NT < 4) {
    float none[NT][4];
    MmaTaps<F, 1, false>(input + InputFragments<NT>::LaneAt(pitch, lane), 0, 0, pitch, weight, 0,
                         acc, none);
  } else {
    const uint64_t at = WgmmaPlainTile(input, pitch);
    BeginWgmma();
#pragma unroll
    for (int i = 0; i < kKSteps; ++i)
      Wgmma<F>(reinterpret_cast<float(&)[NT * 4]>(acc), weight[i], at + i * (4 * pitch >> 4));
    CommitWgmma();
    WaitWgmma<0>();
  }
  __syncwarp();
  if (last) pipeline.PrefetchSecondHalf(next);
  WaitAtBarrier<kMmaBarrier>();
  PutWarpgroupPart<Storage<F>, NT>(acc, accumulators, pipeline.thread);
  WaitAtBarrier<kMmaBarrier>();
#else
  __trap();
#endif
}
template <Format F>
__device__ __forceinline__ void MmaShortcut(const MmaShape& shape, const Layer& layer, bool last,
                                            WeightPipeline& pipeline, const WeightTile& next,
                                            uint8_t* accumulators) {
  const int columns = shape.Columns();
  if (columns == 64) return MmaShortcutTile<F, 8>(shape, layer, last, pipeline, next, accumulators);
  if (columns == 32) return MmaShortcutTile<F, 4>(shape, layer, last, pipeline, next, accumulators);
  if (columns == 16) return MmaShortcutTile<F, 2>(shape, layer, last, pipeline, next, accumulators);
  MmaShortcutTile<F, 1>(shape, layer, last, pipeline, next, accumulators);
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_MMA_TILE_CUH_
