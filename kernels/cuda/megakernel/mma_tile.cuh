#ifndef KERNELS_CUDA_MEGAKERNEL_MMA_TILE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_MMA_TILE_CUH_

#include "kernels/cuda/megakernel/activation_loader.cuh"
#include "kernels/cuda/megakernel/mma_sync.cuh"
#include "kernels/cuda/megakernel/partial_sums.cuh"
#include "kernels/cuda/megakernel/weight_pipeline.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

// The products of a stage of the wide chain, from the input that comes to the warps' sums in shared
// memory. What the block multiplies is chosen before its input is there: from then on to the first
// product there is nothing but putting it in its place.

namespace mjp {

// What the products see: the input that was put in its place. kWgmma: those of a warpgroup.
template <bool kWgmma>
__device__ __forceinline__ void ShowInput() {
  if constexpr (kWgmma) FenceForWgmma();
  WaitAtBarrier<kProductsBarrier>();
}

// Collects the next filling of the input, from in channel `channel0` on, and its weights.
__device__ __forceinline__ void Refill(ChainBlock& b, const WideRoute& r, int channel0,
                                       WideStream& stream, WideWeights& weights, uint8_t* input) {
  const WideSource& source = r.source[channel0 >= r.source_channels];
  WideCollector collector(b, r, source, stream.thread, channel0, input);
  collector.Ask();
  weights.Load(stream);
  weights.AskForNext(stream);
  collector.Take(b.watch);
  ShowInput<true>();
}

// Collects the input of a stage's products, of kPositions x rows (kSome: or fewer). With one wave
// it is looked for when the block has handed on what the stage before made; with two it has been
// asked for.
template <int kWaves, int kPositions, bool kSome>
__device__ __forceinline__ void CollectInput(WideCollector& collector, const WideRoute& r,
                                             WaitWatch& watch) {
  constexpr int kCount = kWideFilling / kFusedPack * kPositions / kChainThreads;
  collector.CollectCount<(kCount < 1 ? 1 : kCount), kSome, (kWaves > 1)>(watch, [&] {
    if (kWaves > 1) return;
    WaitAtBarrier<kHandedOnBarrier>();
    WaitCycles(r.first_look);
  });
}

// The sums have a place of their own with roles, and where shared memory has room for it. Those of
// a 1x1 that is made with its convolution take the input's place, or stand behind the others.
__device__ __forceinline__ bool SumsOverInput(const uint8_t* sums, const uint8_t* input) {
  return sums == input;
}
__device__ __forceinline__ uint8_t* BesideSums(uint8_t* sums, uint8_t* input, int others) {
  return SumsOverInput(sums, input) ? sums + others : input;
}

template <int kCount>
__device__ __forceinline__ void Clear(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) sums[i] = 0.0f;
}

// Which products a stage has, and how its input stands: read before that is waited for.
struct WideKind {
  int all;
  uint32_t input;   // shared address, of the block's phase
  int step, pitch;  // bytes between places, and between eights of channels

  __device__ __forceinline__ WideKind(const WideStage& st, const WideRoute& r,
                                      const uint8_t* shared)
      : all(st.shape.taps | st.shape.residual << 3 | 1 << (4 + r.positions_log2)),
        step(kPackBytes << st.rows_log2),
        pitch(st.places * step) {
    input = SharedAddress(shared) + r.phase * step;
  }
  __device__ __forceinline__ int Taps() const { return all & 7; }
  __device__ __forceinline__ bool Residual() const { return all & 8; }
  __device__ __forceinline__ int Positions() const { return all >> 4; }
};

// Asks for the rest of what comes next with the products: of the last wave, so that the inputs and
// sums of the first come through before, and where no 1x1 follows whose weights stand in its place.
template <int kWaves>
__device__ __forceinline__ void AskRestBeside(const WideKind& kind, const WideRoute& r, int wave,
                                              const WideStream& stream) {
  if constexpr (kWaves == 0) {
    stream.AskRest();
  } else if (wave + 1 == kWaves && !kind.Residual()) {
    stream.AskRest(r.next);
  }
}

// The products of a block, 8 NT positions; each of its two warpgroups has half of the in channels.
// Element n of a tile is (position, row), the row fastest. kRefill: the share takes several
// fillings of the input, which is at `shared`. Leaves the sums in their place, each warpgroup's
// part. kBeside: and those of the 1x1.
template <Format F, int kWaves, int kTaps, bool kBeside, int NT, bool kRefill>
__device__ __forceinline__ void Multiply(const WideKind& kind, WideCollector& collector,
                                         ChainBlock& b, const WideStage& st, const WideRoute& r,
                                         int wave, WideStream& stream, WideWeights& weights,
                                         uint8_t* shared, uint8_t* sums) {
#ifdef MJP_HAVE_WGMMA
  constexpr bool kRoles = kWaves > 0;
  const int step = kind.step, pitch = kind.pitch, half = stream.thread >> 7;
  const uint32_t first = kind.input + half * 2 * pitch;
  // with 32 bits there is less to do before a product; without roles it would take more registers
  using Tile = std::conditional_t<kRoles, uint32_t, uint64_t>;
  Tile input = kRoles ? WgmmaPlainStart(first, pitch) : WgmmaPlainTile(first, pitch);
  int even = kRoles ? r.even : 0;
  if constexpr (kRoles) WorkOut(input);
  if constexpr (kRoles && kTaps == 3) WorkOut(even);
  float main[NT * 4] = {}, beside[kBeside ? NT * 4 : 4];
  if constexpr (kRefill) Clear(beside);  // otherwise later, for registers
  if constexpr (kRoles)
    CollectInput<kWaves, NT * 8 * (kTaps == 3 ? 2 : 1), NT == 1>(collector, r, b.watch);
  ShowInput<true>();
#pragma unroll 1
  for (int done = kWideFilling;; done += kWideFilling) {
    BeginWgmma();
#pragma unroll
    for (int piece = 0; piece < kWidePieces; ++piece) {
      const Tile at = input + piece * (4 * pitch >> 4);
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        const int places = kTaps == 3 ? (tap == 1 ? (kRoles ? even : r.even) : tap / 2) : tap;
        Wgmma<F>(main, weights.main[piece * kTaps + tap], WgmmaPlainAt(at + (places * step >> 4)));
      }
    }
    CommitWgmma();
    if (!kBeside) AskRestBeside<kWaves>(kind, r, wave, stream);
    WaitWgmma<0>();
    if constexpr (kBeside) {
      uint32_t weight[kWidePieces][4];
#pragma unroll
      for (int i = 0; i < kWidePieces; ++i)
        LoadFragment(weight[i], stream.Fragment(kWidePieces * 5 + i));
      if constexpr (!kRefill) Clear(beside);
      BeginWgmma();
#pragma unroll
      for (int piece = 0; piece < kWidePieces; ++piece)
        Wgmma<F>(beside, weight[piece],
                 WgmmaPlainAt(input + piece * (4 * pitch >> 4) + (st.left * step >> 4)));
      CommitWgmma();
      WaitWgmma<0>();
      __syncwarp();
      stream.AskRest();
    }
    // where the sums, or the next filling, take the input's place
    if (kRefill || kBeside || (!kRoles && SumsOverInput(sums, shared)))
      WaitAtBarrier<kProductsBarrier>();
    if (!kRefill || done == st.share) break;
    Refill(b, r, r.channel0 + done, stream, weights, shared);
  }
  using T = Storage<F>;
  const auto put = [&](const float* acc, uint8_t* to) {
    PutPart<T, NT>(*reinterpret_cast<const float(*)[NT][4]>(acc), to, stream.thread);
  };
  put(main, sums);
  if constexpr (kBeside) put(beside, BesideSums(sums, shared, 2 * WideSumsPlace<T>::Part(NT * 8)));
#endif
}

// Puts a warp's sums of an item made whole: of 16 positions those of MultiplyRow.
template <int NT>
__device__ __forceinline__ void PutWhole(const float (&acc)[NT][4], float* part, int m, int lane) {
  if constexpr (NT == 2) {
    PutRow(acc, part, kWideSumsPitch, m, lane);
  } else {
    PutSums<NT>(acc, part, kWideSumsPitch, m, lane);
  }
}

// The products of up to 16 positions, NT 1 or 2. kWhole: of the block's item, of one row, whose
// sums stand as float32, each warpgroup's part [position][half of the in channels][out channel].
template <Format F, int kWaves, int kTaps, bool kBeside, int NT, bool kWhole>
__device__ __forceinline__ void MultiplyFew(const WideKind& kind, WideCollector& collector,
                                            ChainBlock& b, const WideStage& st, const WideRoute& r,
                                            int wave, WideStream& stream,
                                            const WideWeights& weights, uint8_t* shared,
                                            uint8_t* sums) {
  constexpr bool kRow = kWhole && NT == 2;
  constexpr bool kRoles = kWaves > 0;
  const int step = kind.step, pitch = kind.pitch, thread = stream.thread;
  const int lane = thread & 31, half = thread >> 7;
  uint32_t input = kind.input + half * 2 * pitch;
  if constexpr (kWhole) input += (thread >> 6 & 1) * (kWideFilling / kFusedPack) * pitch;
  input += kRow ? st.left * step + FewInput<NT>::LaneAtRow(pitch, lane)
                : FewInput<NT>::LaneAt(pitch, lane);
  uint32_t even = input + r.even * step;
  if constexpr (kRoles) WorkOut(input);
  if constexpr (kRoles && kTaps == 3) WorkOut(even);
  float main[NT][4], beside[NT][4] = {};
  if constexpr (kRoles)
    CollectInput<kWaves, NT * 8 * (kTaps == 3 ? 2 : 1) * (kWhole ? 2 : 1), NT == 1 && !kWhole>(
        collector, r, b.watch);
  ShowInput<false>();
  if (!kBeside) AskRestBeside<kWaves>(kind, r, wave, stream);
  if constexpr (kRow) {
    MultiplyRow<F>(input, pitch, lane, weights.main, main);
  } else {
    MultiplyTaps<F, kTaps, kBeside>(input, even, step, pitch, weights.main,
                                    stream.Fragment(kWidePieces * 5), main, beside);
  }
  if constexpr (kBeside) {
    __syncwarp();
    stream.AskRest();
  }
  if (kBeside || (!kRoles && SumsOverInput(sums, shared))) WaitAtBarrier<kProductsBarrier>();
  using T = Storage<F>;
  if constexpr (kWhole) {
    float* part = reinterpret_cast<float*>(sums) + half * kWholePart;
    PutWhole(main, part, thread >> 1 & 48, lane);
  } else {
    PutPart<T, NT>(main, sums, thread);
  }
  if constexpr (kBeside)
    PutPart<T, NT>(beside, BesideSums(sums, shared, 2 * WideSumsPlace<T>::Part(16)), thread);
}

template <Format F, int kWaves, int kTaps, bool kBeside, typename... Args>
__device__ __forceinline__ void MultiplyTiles(const WideKind& kind, WideCollector& collector,
                                              ChainBlock& b, const WideStage& st,
                                              const WideRoute& r, Args&... args) {
  const int positions = kind.Positions();
  if constexpr (kWaves == 0 && kTaps != 3) {
    if (st.share > kWideFilling)
      return Multiply<F, kWaves, kTaps, kBeside, 8, true>(kind, collector, b, st, r, args...);
  }
  if (positions == 64)
    return Multiply<F, kWaves, kTaps, kBeside, 8, false>(kind, collector, b, st, r, args...);
  if (positions == 32)
    return Multiply<F, kWaves, kTaps, kBeside, 4, false>(kind, collector, b, st, r, args...);
  if (positions < 16)
    return MultiplyFew<F, kWaves, kTaps, kBeside, 1, false>(kind, collector, b, st, r, args...);
  MultiplyFew<F, kWaves, kTaps, kBeside, 2, false>(kind, collector, b, st, r, args...);
}

// The products of a block's own item.
template <Format F, int kWaves, typename... Args>
__device__ __forceinline__ void MultiplyWhole(const WideKind& kind, Args&... args) {
  if (kind.Taps() == 3) {
    MultiplyFew<F, kWaves, 3, false, 1, true>(kind, args...);
  } else if (kind.Positions() == 8) {
    MultiplyFew<F, kWaves, 5, false, 1, true>(kind, args...);
  } else {
    MultiplyFew<F, kWaves, 5, false, 2, true>(kind, args...);
  }
}

// The products of a stage, without the 1x1. With roles of the input that comes; otherwise it is in
// its place.
template <Format F, int kWaves, typename... Args>
__device__ __forceinline__ void MultiplyAlone(const WideKind& kind, Args&... args) {
  if (kind.Taps() == 5) {
    MultiplyTiles<F, kWaves, 5, false>(kind, args...);
  } else if (kind.Taps() == 3) {
    MultiplyTiles<F, kWaves, 3, false>(kind, args...);
  } else {
    MultiplyTiles<F, kWaves, 2, false>(kind, args...);
  }
}

// The products of the 1x1 beside a convolution, 8 NT positions, once that's sums are sent; leaves
// its sums in their place. last: of the waves, which asks for the rest of `next`.
template <Format F, int NT>
__device__ __forceinline__ void MultiplyBeside(const WideKind& kind, const WideStage& st, bool last,
                                               WideStream& stream, const WideTile& next,
                                               uint8_t* sums) {
#ifdef MJP_HAVE_WGMMA
  const int pitch = kind.pitch, lane = stream.thread & 31, half = stream.thread >> 7;
  const uint32_t input = kind.input + half * 2 * pitch + st.left * kind.step;
  uint32_t weight[kWidePieces][4];
#pragma unroll
  for (int i = 0; i < kWidePieces; ++i)
    LoadFragment(weight[i], stream.Fragment(kWidePieces * 5 + i));
  float acc[NT][4] = {};
  if constexpr (NT < 4) {
    float none[NT][4];
    MultiplyTaps<F, 1, false>(input + FewInput<NT>::LaneAt(pitch, lane), 0, 0, pitch, weight, 0,
                              acc, none);
  } else {
    const uint64_t at = WgmmaPlainTile(input, pitch);
    BeginWgmma();
#pragma unroll
    for (int i = 0; i < kWidePieces; ++i)
      Wgmma<F>(reinterpret_cast<float(&)[NT * 4]>(acc), weight[i], at + i * (4 * pitch >> 4));
    CommitWgmma();
    WaitWgmma<0>();
  }
  __syncwarp();
  if (last) stream.AskRest(next);
  WaitAtBarrier<kProductsBarrier>();
  PutPart<Storage<F>, NT>(acc, sums, stream.thread);
  WaitAtBarrier<kProductsBarrier>();
#endif
}
template <Format F>
__device__ __forceinline__ void MultiplyBeside(const WideKind& kind, const WideStage& st, bool last,
                                               WideStream& stream, const WideTile& next,
                                               uint8_t* sums) {
  const int positions = kind.Positions();
  if (positions == 64) return MultiplyBeside<F, 8>(kind, st, last, stream, next, sums);
  if (positions == 32) return MultiplyBeside<F, 4>(kind, st, last, stream, next, sums);
  if (positions == 16) return MultiplyBeside<F, 2>(kind, st, last, stream, next, sums);
  MultiplyBeside<F, 1>(kind, st, last, stream, next, sums);
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_MMA_TILE_CUH_
