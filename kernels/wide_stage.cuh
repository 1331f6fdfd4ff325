#ifndef KERNELS_WIDE_STAGE_CUH_
#define KERNELS_WIDE_STAGE_CUH_

#include "kernels/wgmma.cuh"
#include "kernels/wide_few.cuh"
#include "kernels/wide_finish.cuh"
#include "kernels/wide_input.cuh"
#include "kernels/wide_stream.cuh"

// One convolution of the wide chain: collect the input, multiply, send the sums, finish an item.

namespace dp {

// Adds the two groups' sums and sends them to the blocks whose items they are. Made before the
// input is waited for.
struct WideSender {
  uint8_t* box;         // of a thread's first four
  int from, part;       // numbers: to there from where the sums stand; the groups' are `part` apart
  int step, two_steps;  // bytes: from a round of 16 positions to the next, and over two
  int rounds;           // or fewer positions
  bool sums16;
  uint32_t parity;

  __device__ __forceinline__ WideSender(const WideRoute& r, uint32_t pass, int thread)
      : sums16(r.sums16) {
    const int n = thread / 16, m = thread % 16 * 4, rows_log2 = r.rows_log2;
    const int channel = r.out + m, in_group = channel & ((1 << r.item_log2) - 1);
    from = n * kWideSumsPitch + m, part = max(16, 1 << r.positions_log2) * kWideSumsPitch;
    rounds = n >> r.positions_log2 > 0 ? 0 : max(1, 1 << r.positions_log2 >> 4);
    const WideTurn turn = TurnOf(r.turns, pass);
    parity = turn.parity;
    box = r.to + turn.bytes + (channel >> r.item_log2) * r.to_group + in_group * (sums16 ? 2 : 4) +
          (n & ((1 << rows_log2) - 1)) * r.to_row + (n >> rows_log2) * r.to_position;
    // with 32 rows every second round is 16 rows on, otherwise all are 16 positions and rows on
    const bool rows32 = rows_log2 > 4;
    step = rows32 ? 16 * r.to_row : (16 >> rows_log2) * r.to_position;
    two_steps = rows32 ? r.to_position : 2 * step;
  }
  // Goes on to the sums of the 1x1.
  __device__ __forceinline__ void GoBeside(const WideRoute& r, uint32_t pass) {
    const WideTurn turn = TurnOf(r.turns_beside, pass);
    box += r.to_beside + turn.bytes - (r.to + TurnOf(r.turns, pass).bytes);
    parity = turn.parity;
  }
  __device__ __forceinline__ void Send(const float* sums) const {
    const float* at = sums + from;
#pragma unroll
    for (int round = 0; round < 8; ++round) {
      if (round >= rounds) break;
      float4 v = Load4(at + round * 16 * kWideSumsPitch);
      Add4(v, Load4(at + round * 16 * kWideSumsPitch + part));
      uint8_t* there = box + round / 2 * two_steps + round % 2 * step;
      if (sums16) {
        WideSums16::Store(there, v, parity);
      } else {
        WideSums32::Store(there, v, parity);
      }
    }
  }
};

// What the products see: the input that was put in its place.
__device__ __forceinline__ void ShowInput() {
  FenceForWgmma();
  WaitAtBarrier<kProductsBarrier>();
}

// Collects the next filling of the input, from in channel `channel0` on, and its weights.
__device__ __forceinline__ void Refill(ChainBlock& b, const WideRoute& r, int channel0,
                                       WideStream& stream, WideWeights& weights, uint8_t* input) {
  WideCollector collector(b, r, stream.thread, channel0, input);
  collector.Ask();
  weights.Load(stream);
  weights.AskForNext(stream);
  collector.Take(b.watch);
  ShowInput();
}

// The sums have a place of their own where shared memory has room for it. Those of the 1x1 take the
// input's place, or stand behind the others.
__device__ __forceinline__ bool SumsOverInput(const float* sums, const uint8_t* input) {
  return reinterpret_cast<const uint8_t*>(sums) == input;
}
__device__ __forceinline__ float* BesideSums(float* sums, uint8_t* input, int others) {
  return SumsOverInput(sums, input) ? sums + others : reinterpret_cast<float*>(input);
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
      : all(st.shape.taps | st.shape.residual << 3 | (st.rows_log2 == 0) << 4 |
            1 << (5 + r.positions_log2)),
        step(kPackBytes << st.rows_log2),
        pitch(st.places * step) {
    input = SharedAddress(shared) + r.phase * step;
  }
  __device__ __forceinline__ int Taps() const { return all & 7; }
  __device__ __forceinline__ bool Residual() const { return all & 8; }
  __device__ __forceinline__ bool OneRow() const { return all & 16; }
  __device__ __forceinline__ int Positions() const { return all >> 5; }
};

// The products of a block, 8 NT positions; each of its two warpgroups has half of the in channels.
// Element n of a tile is (position, row), the row fastest. kRefill: the share takes several
// fillings of the input, which is at `shared`; the first one is there. Leaves the sums in its
// place: the convolution's, each warpgroup's part, then the 1x1's.
template <Format F, int kTaps, bool kBeside, int NT, bool kRefill>
__device__ __forceinline__ void Multiply(const WideKind& kind, ChainBlock& b, const WideStage& st,
                                         const WideRoute& r, WideStream& stream,
                                         WideWeights& weights, uint8_t* shared, float* sums) {
#ifdef DP_HAVE_WGMMA
  const int step = kind.step, pitch = kind.pitch, warp = stream.thread >> 5, half = warp / 4;
  const uint64_t input = WgmmaPlainTile(kind.input + half * 2 * pitch, pitch);
  float main[NT * 4] = {}, beside[kBeside ? NT * 4 : 4];
  if constexpr (kRefill) Clear(beside);  // otherwise later, for registers
#pragma unroll 1
  for (int done = kWideFilling;; done += kWideFilling) {
    BeginWgmma();
#pragma unroll
    for (int piece = 0; piece < kWidePieces; ++piece) {
      const uint64_t at = input + piece * (4 * pitch >> 4);
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        const int places = kTaps == 3 ? (tap == 1 ? r.even : tap / 2) : tap;
        Wgmma<F>(main, weights.main[piece * kTaps + tap], at + (places * step >> 4));
      }
    }
    CommitWgmma();
    if constexpr (!kBeside) stream.AskRest();
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
        Wgmma<F>(beside, weight[piece], input + piece * (4 * pitch >> 4) + (st.left * step >> 4));
      CommitWgmma();
      WaitWgmma<0>();
      __syncwarp();
      stream.AskRest();
    }
    // where the sums, or the next filling, take the input's place
    if (kRefill || kBeside || SumsOverInput(sums, shared)) WaitAtBarrier<kProductsBarrier>();
    if (!kRefill || done == st.share) break;
    Refill(b, r, r.channel0 + done, stream, weights, shared);
  }
  constexpr int kPart = NT * 8 * kWideSumsPitch;
  using Sums = const float(*)[NT][4];
  PutSums<NT>(*reinterpret_cast<Sums>(main), sums + half * kPart, kWideSumsPitch, warp % 4 * 16,
              stream.thread & 31);
  if constexpr (kBeside)
    PutSums<NT>(*reinterpret_cast<Sums>(beside), BesideSums(sums, shared, 2 * kPart) + half * kPart,
                kWideSumsPitch, warp % 4 * 16, stream.thread & 31);
#endif
}

// The same with 32 rows of four positions and five taps, two positions at a time: one tap of either
// reads zeros alone.
template <Format F>
__device__ __forceinline__ void MultiplyRowsOfFour(const WideKind& kind, WideStream& stream,
                                                   const WideWeights& weights, uint8_t* shared,
                                                   float* sums) {
#ifdef DP_HAVE_WGMMA
  const int step = kind.step, pitch = kind.pitch, warp = stream.thread >> 5;
  const uint64_t input = WgmmaPlainTile(kind.input + warp / 4 * 2 * pitch, pitch);
  float main[2][32] = {};
#pragma unroll
  for (int two = 0; two < 2; ++two) {
    BeginWgmma();
#pragma unroll
    for (int piece = 0; piece < kWidePieces; ++piece)
#pragma unroll
      for (int tap = 1 - two; tap < 5 - two; ++tap)
        Wgmma<F>(main[two], weights.main[piece * 5 + tap],
                 input + ((piece * 4 * pitch + (tap + two * 2) * step) >> 4));
    CommitWgmma();
  }
  stream.AskRest();
  WaitWgmma<0>();
  if (SumsOverInput(sums, shared)) WaitAtBarrier<kProductsBarrier>();
  constexpr int kTwo = 64 * kWideSumsPitch;
  using Sums = const float(*)[8][4];
#pragma unroll
  for (int two = 0; two < 2; ++two)
    PutSums<8>(*reinterpret_cast<Sums>(main[two]), sums + warp / 4 * 2 * kTwo + two * kTwo,
               kWideSumsPitch, warp % 4 * 16, stream.thread & 31);
#endif
}

// The products of up to 16 positions, NT 1 or 2; kRow: of one row.
template <Format F, int kTaps, bool kBeside, int NT, bool kRow>
__device__ __forceinline__ void MultiplyFew(const WideKind& kind, const WideStage& st,
                                            const WideRoute& r, WideStream& stream,
                                            const WideWeights& weights, uint8_t* shared,
                                            float* sums) {
  const int step = kind.step, pitch = kind.pitch, thread = stream.thread;
  const int lane = thread & 31, half = thread >> 7, m = thread >> 1 & 48;
  const uint32_t input = kind.input + half * 2 * pitch;
  float main[NT][4], beside[NT][4] = {};
  if constexpr (!kBeside) stream.AskRest();
  if constexpr (kRow) {
    MultiplyRow<F>(input + st.left * step, pitch, lane, weights.main, main);
  } else {
    MultiplyTaps<F, kTaps, kBeside>(input, input + r.even * step, step, pitch, lane, weights.main,
                                    stream.Fragment(kWidePieces * 5), main, beside);
  }
  if constexpr (kBeside) {
    __syncwarp();
    stream.AskRest();
  }
  if (kBeside || SumsOverInput(sums, shared)) WaitAtBarrier<kProductsBarrier>();
  constexpr int kPart = 16 * kWideSumsPitch;
  if constexpr (kRow) {
    PutRow(main, sums + half * kPart, kWideSumsPitch, m, lane);
  } else {
    PutSums<NT>(main, sums + half * kPart, kWideSumsPitch, m, lane);
  }
  if constexpr (kBeside)
    PutSums<NT>(beside, BesideSums(sums, shared, 2 * kPart) + half * kPart, kWideSumsPitch, m,
                lane);
}

template <Format F, bool kRoles, int kTaps, bool kBeside, typename... Args>
__device__ __forceinline__ void MultiplyTiles(const WideKind& kind, ChainBlock& b,
                                              const WideStage& st, const WideRoute& r,
                                              Args&... args) {
  const int positions = kind.Positions();
  if constexpr (!kRoles && kTaps != 3) {
    if (st.share > kWideFilling)
      return Multiply<F, kTaps, kBeside, 8, true>(kind, b, st, r, args...);
  }
  if constexpr (!kRoles && !kBeside) {
    if (kTaps == 5 && positions == 128 && r.in_log2 == 2)
      return MultiplyRowsOfFour<F>(kind, args...);
    if (positions == 128) return Multiply<F, kTaps, false, 16, false>(kind, b, st, r, args...);
  }
  if (positions == 64) return Multiply<F, kTaps, kBeside, 8, false>(kind, b, st, r, args...);
  if (positions == 32) return Multiply<F, kTaps, kBeside, 4, false>(kind, b, st, r, args...);
  if (positions < 16) return MultiplyFew<F, kTaps, kBeside, 1, false>(kind, st, r, args...);
  if (kTaps == 5 && !kBeside && kind.OneRow())
    return MultiplyFew<F, kTaps, false, 2, kTaps == 5>(kind, st, r, args...);
  MultiplyFew<F, kTaps, kBeside, 2, false>(kind, st, r, args...);
}

// Hands on the sums that the products left, of the convolution and the 1x1. kRoles: those that
// finish wait for the first alone.
template <bool kRoles>
__device__ __forceinline__ void SendAll(const WideRoute& r, WideSender& sender, bool residual,
                                        uint32_t pass, float* sums, uint8_t* input) {
#pragma unroll 1
  for (bool beside = false;; beside = true) {
    sender.Send(beside ? BesideSums(sums, input, 2 * sender.part) : sums);
    if (kRoles && !beside) ArriveAtBarrier<kSentBarrier>();
    if (beside || !residual) return;
    sender.GoBeside(r, pass);
  }
}

// Makes the block's products of a stage and hands their sums on. kRoles: what does not need the
// input is done before the block has handed on what the stage before made; otherwise while the
// input, which has been asked for, is on its way.
template <Format F, bool kRoles>
__device__ __forceinline__ void MultiplyAndSend(ChainBlock& b, const WideStage& st,
                                                const WideRoute& r, WideStream& stream,
                                                uint8_t* input, float* sums, uint32_t pass) {
  stream.thread = kRoles ? ThisThread() : threadIdx.x;
  WideWeights weights;
  const auto prepare = [&] {
    weights.Load(stream);
    // the input takes the place of sums that all have sent
    if (SumsOverInput(sums, input)) WaitAtBarrier<kProductsBarrier>();
    ClearBorders(r, stream.thread, input);
    weights.AskForNext(stream);
  };
  if (kRoles) prepare();
  WideSender sender(r, pass, stream.thread);
  WideCollector collector(b, r, stream.thread, r.channel0, input);
  if (kRoles) {
    WaitAtBarrier<kHandedOnBarrier>();
    WaitCycles(r.first_look);
  }
  collector.Ask();
  if (!kRoles) prepare();
  const WideKind kind(st, r, input);
  collector.Take(b.watch);
  ShowInput();
  if (kind.Taps() == 5 && !kind.Residual()) {
    MultiplyTiles<F, kRoles, 5, false>(kind, b, st, r, stream, weights, input, sums);
  } else if (kind.Taps() == 5) {
    MultiplyTiles<F, kRoles, 5, true>(kind, b, st, r, stream, weights, input, sums);
  } else if (kind.Taps() == 3) {
    MultiplyTiles<F, kRoles, 3, false>(kind, b, st, r, stream, weights, input, sums);
  } else {
    MultiplyTiles<F, kRoles, 2, false>(kind, b, st, r, stream, weights, input, sums);
  }
  WaitAtBarrier<kProductsBarrier>();
  SendAll<kRoles>(r, sender, kind.Residual(), pass, sums, input);
  // the next input takes the place of the 1x1's sums
  if (kind.Residual() && !SumsOverInput(sums, input)) WaitAtBarrier<kProductsBarrier>();
}

// All stages of a pass, by threads that multiply and finish.
template <Format F>
__device__ __forceinline__ void RunStages(ChainBlock& b, const WideStage* stages,
                                          const WideRoute* routes, int count,
                                          const WideThread& thread, WideStream& stream,
                                          uint8_t* input, float* sums, uint32_t pass) {
  float4 rest = make_float4(0, 0, 0, 0);
  for (int i = 0; i < count; ++i) {
    if (routes[i].multiplies)
      MultiplyAndSend<F, false>(b, stages[i], routes[i], stream, input, sums, pass);
    FinishItem<Storage<F>, false>(b, stages[i], routes[i], thread, pass, rest);
    // those without an item are to know what the others, by theirs, know of all blocks
    if (i > 0 && stages[i - 1].fence) WaitAtBarrier<kProductsBarrier>();
  }
}

// The products of all stages of a pass, by the threads that multiply. Ends when the block has
// handed on all.
template <Format F>
__device__ __forceinline__ void MultiplyStages(ChainBlock& b, const WideStage* stages,
                                               const WideRoute* routes, int count,
                                               WideStream& stream, uint8_t* input, float* sums,
                                               uint32_t pass) {
  for (int i = 0; i < count; ++i) {
    if (routes[i].multiplies) {
      MultiplyAndSend<F, true>(b, stages[i], routes[i], stream, input, sums, pass);
    } else {
      if (i > 0) WaitAtBarrier<kHandedOnBarrier>();
      ArriveAtBarrier<kSentBarrier>();
    }
  }
  WaitAtBarrier<kHandedOnBarrier>();
}

// The items of all stages of a pass, by the threads that finish them.
template <Format F>
__device__ __forceinline__ void FinishStages(ChainBlock& b, const WideStage* stages,
                                             const WideRoute* routes, int count, uint32_t pass) {
  const WideItem item = ItemOfBlock(blockIdx.x);
  float4 rest = make_float4(0, 0, 0, 0);
  for (int i = 0; i < count; ++i) {
    const WideThread thread =
        MakeWideThread(b.a, item, stages[i].items_log2, ThisThread() - kChainThreads);
    FinishItem<Storage<F>, true>(b, stages[i], routes[i], thread, pass, rest);
  }
}

}  // namespace dp

#endif  // KERNELS_WIDE_STAGE_CUH_
