#ifndef KERNELS_CUDA_MEGAKERNEL_MMA_WARPS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_MMA_WARPS_CUH_

#include "kernels/cuda/megakernel/epilogue_warps.cuh"
#include "kernels/cuda/megakernel/mma_tile.cuh"

// One convolution of the wide chain: collect the input, multiply, send the sums, finish an item.

namespace mjp {

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
                                                uint8_t* input, uint8_t* sums, uint32_t pass) {
  stream.thread = ThisThread();
  WideWeights weights;
  weights.Load(stream);
  WideSender<Storage<F>> sender(r, pass, stream.thread);
  WideCollector collector(b, r, r.source[0], stream.thread, r.channel0, input);
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
      WideSender<Storage<F>> beside = sender;
      beside.GoBeside(r, pass, wave);
      beside.Send(sums);
    }
    sender.NextWave(r);
  }
}

// The same of a stage whose items are made whole: their sums stay in the block, each wave's in a
// place of its own.
template <Format F, int kWaves>
__device__ __forceinline__ void MultiplyOwn(ChainBlock& b, const WideStage& st, const WideRoute& r,
                                            WideStream& stream, uint8_t* input, uint8_t* whole) {
  stream.thread = ThisThread();
  WideWeights weights;
  weights.Load(stream);
  WideCollector collector(b, r, r.source[0], stream.thread, r.channel0, input);
  const WideKind kind(st, r, input);
  if (kWaves > 1) AskForWave(collector, r, 0);
  ClearBorders(r, stream.thread, input);
  weights.AskForNext(stream, r.next);
#pragma unroll 1
  for (int wave = 0; wave < kWaves; ++wave) {
    if (kWaves > 1) stream.thread = ThisThread();
    uint8_t* sums = whole + wave * kWholeBytes;
    MultiplyWhole<F, kWaves>(kind, collector, b, st, r, wave, stream, weights, input, sums);
    ArriveAtBarrier<kSentBarrier>(wave);
    if (wave + 1 < kWaves) AskForWave(collector, r, wave + 1);
    WaitAtBarrier<kProductsBarrier>();  // the next input takes the place of this one
  }
}

// Collects the input of a stage, makes the block's products and hands their sums on, by threads
// that finish too: what does not need the input is done while it is on its way.
template <Format F>
__device__ __forceinline__ void CollectAndMultiply(ChainBlock& b, const WideStage& st,
                                                   const WideRoute& r, WideStream& stream,
                                                   uint8_t* input, uint8_t* sums, uint32_t pass) {
  WideSender<Storage<F>> sender(r, pass, stream.thread);
  const WideSource& source = r.source[r.channel0 >= r.source_channels];
  WideCollector collector(b, r, source, stream.thread, r.channel0, input);
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
                                          const WideRoute* routes, int count, WideThread thread,
                                          WideStream& stream, uint8_t* input, uint8_t* sums,
                                          uint32_t pass) {
  SetStep(b, thread);
  float4 rest = make_float4(0, 0, 0, 0);
  for (int i = 0; i < count; ++i) {
    if (routes[i].multiplies)
      CollectAndMultiply<F>(b, stages[i], routes[i], stream, input, sums, pass);
    ChannelTerms terms;
    FinishItem<Storage<F>, 0>(b, stages[i], routes[i], thread, pass, rest, terms, nullptr);
    // those without an item are to know what the others, by theirs, know of all blocks
    if (i > 0 && stages[i - 1].fence) WaitAtBarrier<kProductsBarrier>();
  }
}

// The products of all stages of a pass, by the threads that multiply. Ends when the block has
// handed on all.
template <Format F, int kWaves>
__device__ __forceinline__ void MultiplyStages(ChainBlock& b, const WideStage* stages,
                                               const WideRoute* routes, int count,
                                               WideStream& stream, uint8_t* input, uint8_t* sums,
                                               uint8_t* whole, uint32_t pass) {
  for (int i = 0; i < count; ++i) {
    if (stages[i].whole) {
      MultiplyOwn<F, kWaves>(b, stages[i], routes[i], stream, input, whole);
      continue;
    }
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

// The items of all stages of a pass, by the threads that finish them, of each wave `first` and
// `second`. `whole`: the first wave's sums of items made whole; rests: a thread's numbers of the
// residual, of each wave.
template <Format F, int kWaves>
__device__ __forceinline__ void FinishStages(ChainBlock& b, const WideStage* stages,
                                             const WideRoute* routes, int count,
                                             const uint8_t* whole, float4* rests, uint32_t pass,
                                             WideThread first, WideThread second) {
  SetStep(b, first), SetStep(b, second);
  for (int i = 0; i < count; ++i) {
    ChannelTerms terms;
#pragma unroll 1
    for (int wave = 0; wave < kWaves; ++wave) {
      WideThread thread = wave == 0 ? first : second;
      thread.index = ThisThread() - kChainThreads;
      float4& rest = rests[wave * kWideFinishers + thread.index];
      FinishItem<Storage<F>, kWaves>(b, stages[i], routes[i], thread, pass, rest, terms,
                                     whole + wave * kWholeBytes);
    }
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_MMA_WARPS_CUH_
