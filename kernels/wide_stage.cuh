#ifndef KERNELS_WIDE_STAGE_CUH_
#define KERNELS_WIDE_STAGE_CUH_

#include "kernels/wide_finish.cuh"
#include "kernels/wide_multiply.cuh"

// One convolution of the wide chain: collect the input, multiply, send the sums, finish an item.

namespace dp {

// Adds the two groups' sums and sends them to the blocks whose items they are. Made before the
// input is waited for.
struct WideSender {
  uint8_t* box;    // of a thread's first four
  int from, part;  // numbers: to there from where the sums stand; the groups' are `part` apart
  int step;        // bytes from a round of 16 positions to the next
  int rounds;      // or fewer positions
  bool sums16;
  uint32_t parity;

  __device__ __forceinline__ WideSender(const WideRoute& r, uint32_t pass, int thread)
      : sums16(r.sums16) {
    const int n = thread / 16, m = thread % 16 * 4, rows_log2 = r.rows_log2;
    const int channel = r.out + m, in_group = channel & ((1 << r.item_log2) - 1);
    from = n * kWideSumsPitch + m, part = max(16, 1 << r.positions_log2) * kWideSumsPitch;
    rounds = n >> r.positions_log2 > 0 ? 0 : max(1, 1 << r.positions_log2 >> 4);
    const WideTurn turn = TurnOf(r.turns, pass, 0);
    parity = turn.parity;
    box = r.to + turn.bytes + (channel >> r.item_log2) * r.to_group + in_group * (sums16 ? 2 : 4) +
          (n & ((1 << rows_log2) - 1)) * r.to_row + (n >> rows_log2) * r.to_position;
    step = (16 >> rows_log2) * r.to_position;
  }
  // Goes on to the sums of the 1x1.
  __device__ __forceinline__ void GoBeside(const WideRoute& r, uint32_t pass, int wave) {
    const WideTurn turn = TurnOf(r.turns_beside, pass, wave);
    box += r.to_beside + turn.bytes - (r.to + TurnOf(r.turns, pass, wave).bytes);
    parity = turn.parity;
  }
  // Goes on to the next wave.
  __device__ __forceinline__ void NextWave(const WideRoute& r) { box += 2 * r.turns.other; }
  __device__ __forceinline__ void Send(const float* sums) const {
    const float* at = sums + from;
#pragma unroll
    for (int round = 0; round < 4; ++round) {
      if (round >= rounds) break;
      float4 v = Load4(at + round * 16 * kWideSumsPitch);
      Add4(v, Load4(at + round * 16 * kWideSumsPitch + part));
      uint8_t* there = box + round * step;
      if (sums16) {
        WideSums16::Store(there, v, parity);
      } else {
        WideSums32::Store(there, v, parity);
      }
    }
  }
};

// Whether the input of one of two waves is of so many rows that it is not asked for at once: who
// looks too soon delays the others.
__device__ __forceinline__ bool LooksLater(const WideRoute& r) {
  constexpr int kManyRowsLog2 = 4;
  return r.rows_log2 >= kManyRowsLog2;
}

// Asks for the input of one of two waves, once the block has handed on what the stage before made
// of it; or leaves it to be asked for later.
__device__ __forceinline__ void AskForWave(WideCollector& collector, const WideRoute& r, int wave) {
  WaitAtBarrier<kHandedOnBarrier>(wave);
  if (wave > 0) collector.NextWave();
  if (LooksLater(r)) return collector.AskLater();
  collector.Ask();
}

// Makes the block's products of a stage and hands their sums on, by the threads that multiply: all
// that does not need the input is done before. Weights are in registers before the input is asked
// for, once the block has handed on what the stage before made.
template <Format F, int kWaves>
__device__ __forceinline__ void MultiplyAndSend(ChainBlock& b, const WideStage& st,
                                                const WideRoute& r, WideStream& stream,
                                                uint8_t* input, float* sums, uint32_t pass) {
  stream.thread = ThisThread();
  WideWeights weights;
  weights.Load(stream);
  WideSender sender(r, pass, stream.thread);
  WideCollector collector(b, r, stream.thread, r.channel0, input);
  const WideKind kind(st, r, input);
  if (kWaves > 1) AskForWave(collector, r, 0);
  ClearBorders(r, stream.thread, input);
  if (kWaves > 1 && LooksLater(r)) collector.Ask();  // it is to come before the weights
  weights.AskForNext(stream, r.next);
#pragma unroll 1
  for (int wave = 0; wave < kWaves; ++wave) {
    if (kWaves > 1) stream.thread = ThisThread();  // or its addresses are held in registers
    MultiplyAlone<F, kWaves>(kind, collector, b, st, r, wave, stream, weights, input, sums);
    WaitAtBarrier<kProductsBarrier>();
    sender.Send(sums);
    ArriveAtBarrier<kSentBarrier>(wave);
    // not sooner, or the first wave's sums would wait for the second one's item
    if (wave + 1 < kWaves) AskForWave(collector, r, wave + 1);
    if (kind.Residual()) {
      MultiplyBeside<F>(kind, st, wave + 1 == kWaves, stream, r.next, sums);
      WideSender beside = sender;
      beside.GoBeside(r, pass, wave);
      beside.Send(sums);
    }
    sender.NextWave(r);
  }
}

// Collects the input of a stage, makes the block's products and hands their sums on, by threads
// that finish too: what does not need the input is done while it is on its way.
template <Format F>
__device__ __forceinline__ void CollectAndMultiply(ChainBlock& b, const WideStage& st,
                                                   const WideRoute& r, WideStream& stream,
                                                   uint8_t* input, float* sums, uint32_t pass) {
  WideSender sender(r, pass, stream.thread);
  WideCollector collector(b, r, stream.thread, r.channel0, input);
  collector.Ask();
  WideWeights weights;
  weights.Load(stream);
  // the input takes the place of sums that all have sent
  const bool over = SumsOverInput(sums, input);
  if (over) WaitAtBarrier<kProductsBarrier>();
  ClearBorders(r, stream.thread, input);
  weights.AskForNext(stream);
  const WideKind kind(st, r, input);
  collector.Take(b.watch);
  const int wave = 0;
  if (kind.Residual()) {
    MultiplyTiles<F, 0, 5, true>(kind, collector, b, st, r, wave, stream, weights, input, sums);
  } else {
    MultiplyAlone<F, 0>(kind, collector, b, st, r, wave, stream, weights, input, sums);
  }
  WaitAtBarrier<kProductsBarrier>();
  sender.Send(sums);
  if (!kind.Residual()) return;
  sender.GoBeside(r, pass, 0);
  sender.Send(BesideSums(sums, input, 2 * sender.part));
  // the next input takes their place
  if (!over) WaitAtBarrier<kProductsBarrier>();
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
      CollectAndMultiply<F>(b, stages[i], routes[i], stream, input, sums, pass);
    FinishItem<Storage<F>, 0>(b, stages[i], routes[i], thread, pass, rest);
    // those without an item are to know what the others, by theirs, know of all blocks
    if (i > 0 && stages[i - 1].fence) WaitAtBarrier<kProductsBarrier>();
  }
}

// The products of all stages of a pass, by the threads that multiply. Ends when the block has
// handed on all.
template <Format F, int kWaves>
__device__ __forceinline__ void MultiplyStages(ChainBlock& b, const WideStage* stages,
                                               const WideRoute* routes, int count,
                                               WideStream& stream, uint8_t* input, float* sums,
                                               uint32_t pass) {
  for (int i = 0; i < count; ++i) {
    if (routes[i].multiplies) {
      MultiplyAndSend<F, kWaves>(b, stages[i], routes[i], stream, input, sums, pass);
      continue;
    }
#pragma unroll
    for (int wave = 0; wave < kWaves; ++wave) {
      if (i > 0) WaitAtBarrier<kHandedOnBarrier>(wave);
      ArriveAtBarrier<kSentBarrier>(wave);
    }
  }
#pragma unroll
  for (int wave = 0; wave < kWaves; ++wave) WaitAtBarrier<kHandedOnBarrier>(wave);
}

// The items of all stages of a pass, by the threads that finish them.
template <Format F, int kWaves>
__device__ __forceinline__ void FinishStages(ChainBlock& b, const WideStage* stages,
                                             const WideRoute* routes, int count, uint32_t pass) {
  const WideItem item = ItemOfBlock(blockIdx.x);
  float4 rest = make_float4(0, 0, 0, 0), rest_of_other = rest;
  for (int i = 0; i < count; ++i) {
#pragma unroll 1
    for (int wave = 0; wave < kWaves; ++wave) {
      const WideThread thread = MakeWideThread(b.a, item, wave, ThisThread() - kChainThreads);
      FinishItem<Storage<F>, kWaves>(b, stages[i], routes[i], thread, pass, rest);
      if (kWaves == 1) continue;
      const float4 next = rest_of_other;
      rest_of_other = rest, rest = next;
    }
  }
}

}  // namespace dp

#endif  // KERNELS_WIDE_STAGE_CUH_
