#ifndef KERNELS_CUDA_MEGAKERNEL_MMA_WARPS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_MMA_WARPS_CUH_

#include "kernels/cuda/megakernel/epilogue_warps.cuh"
#include "kernels/cuda/megakernel/mma_tile.cuh"

// The main loops over a pass' layers: of the MMA warps, and of warps that run the epilogue too. A
// layer is: receive activations, multiply, send partial sums; receive those of the own output tile,
// run the epilogue, publish.

namespace mjp::megakernel {

// Whether the first poll of one of two row batches' input is put off: with 16 rows early polls load
// L2 and slow the producers down.
__device__ __forceinline__ bool PollsLate(const LayerDescriptor& desc) {
  constexpr int kManyRowsLog2 = 4;
  return desc.rows_log2 >= kManyRowsLog2;
}

// Issues the loads of a row batch's input, or defers them, once the CTA has published its own tile
// of the layer before.
__device__ __forceinline__ void IssueInput(ActivationLoader& loader, const LayerDescriptor& desc,
                                           int batch) {
  WaitAtBarrier<kActivationPublished>(batch);
  if (batch > 0) loader.NextBatch();
  if (PollsLate(desc)) return loader.DeferLoads();
  loader.IssueLoads();
}

// One layer of the MMA warps: multiplies the CTA's GEMM tile and sends its partial sums. Weights
// are in registers, and all that does not need the input is done, before that is polled.
template <Format F, int kRowBatches>
__device__ __forceinline__ void RunSplitKLayer(CtaState& cta, const Layer& layer,
                                               const LayerDescriptor& desc,
                                               WeightPipeline& pipeline, uint8_t* input,
                                               uint8_t* accumulators, uint32_t pass) {
  pipeline.thread = RematerializeTid();
  WeightFragments weights;
  weights.Load(pipeline);
  PartialSumSender<Storage<F>> sender(desc, pass, pipeline.thread);
  ActivationLoader loader(cta, desc, desc.source[0], pipeline.thread, desc.channel0, input);
  const MmaShape shape(layer, desc, input);
  if (kRowBatches > 1) IssueInput(loader, desc, 0);
  ClearHalo(desc, pipeline.thread, input);
  if (kRowBatches > 1 && PollsLate(desc)) loader.IssueLoads();  // ahead of the weights' copy
  weights.PrefetchNext(pipeline, desc.next_weights);
#pragma unroll 1
  for (int batch = 0; batch < kRowBatches; ++batch) {
    if (kRowBatches > 1) pipeline.thread = RematerializeTid();  // or registers hold its addresses
    MmaByTaps<F, kRowBatches>(shape, loader, cta, layer, desc, batch, pipeline, weights, input,
                              accumulators);
    WaitAtBarrier<kMmaBarrier>();
    sender.Send(accumulators);
    ArriveAtBarrier<kPartialSumsSent>(batch);
    // not sooner, or the first batch's partial sums would wait for the second one's activations
    if (batch + 1 < kRowBatches) IssueInput(loader, desc, batch + 1);
    if (shape.HasShortcut()) {
      MmaShortcut<F>(shape, layer, batch + 1 == kRowBatches, pipeline, desc.next_weights,
                     accumulators);
      PartialSumSender<Storage<F>> shortcut = sender;
      shortcut.GoToShortcut(desc, pass, batch);
      shortcut.Send(accumulators);
    }
    sender.NextBatch(desc);
  }
}

// The same of a CTA-local layer: the accumulators stay in shared memory, those of each row batch in
// a place of its own.
template <Format F, int kRowBatches>
__device__ __forceinline__ void RunCtaLocalLayer(CtaState& cta, const Layer& layer,
                                                 const LayerDescriptor& desc,
                                                 WeightPipeline& pipeline, uint8_t* input,
                                                 uint8_t* local) {
  pipeline.thread = RematerializeTid();
  WeightFragments weights;
  weights.Load(pipeline);
  ActivationLoader loader(cta, desc, desc.source[0], pipeline.thread, desc.channel0, input);
  const MmaShape shape(layer, desc, input);
  if (kRowBatches > 1) IssueInput(loader, desc, 0);
  ClearHalo(desc, pipeline.thread, input);
  weights.PrefetchNext(pipeline, desc.next_weights);
#pragma unroll 1
  for (int batch = 0; batch < kRowBatches; ++batch) {
    if (kRowBatches > 1) pipeline.thread = RematerializeTid();
    uint8_t* accumulators = local + batch * kLocalAccumulatorBytes;
    MmaCtaLocal<F, kRowBatches>(shape, loader, cta, layer, desc, batch, pipeline, weights, input,
                                accumulators);
    ArriveAtBarrier<kPartialSumsSent>(batch);
    if (batch + 1 < kRowBatches) IssueInput(loader, desc, batch + 1);
    WaitAtBarrier<kMmaBarrier>();  // the next input takes the place of this one
  }
}

// The same without warp specialisation, where the input's loads are issued first: what does not
// need it is done while it is on its way.
template <Format F>
__device__ __forceinline__ void RunUnspecializedLayer(CtaState& cta, const Layer& layer,
                                                      const LayerDescriptor& desc,
                                                      WeightPipeline& pipeline, uint8_t* input,
                                                      uint8_t* accumulators, uint32_t pass) {
  PartialSumSender<Storage<F>> sender(desc, pass, pipeline.thread);
  const ActivationSource& source = desc.source[desc.channel0 >= desc.source_channels];
  ActivationLoader loader(cta, desc, source, pipeline.thread, desc.channel0, input);
  loader.IssueLoads();
  WeightFragments weights;
  weights.Load(pipeline);
  // the input takes the place of accumulators that all have sent
  const bool replaces_input = AccumulatorsReplaceInput(accumulators, input);
  if (replaces_input) WaitAtBarrier<kMmaBarrier>();
  ClearHalo(desc, pipeline.thread, input);
  weights.PrefetchNext(pipeline);
  const MmaShape shape(layer, desc, input);
  loader.ReceiveAll(cta.watchdog);
  const int batch = 0;
  if (shape.HasShortcut()) {
    MmaByColumns<F, 0, 5, true>(shape, loader, cta, layer, desc, batch, pipeline, weights, input,
                                accumulators);
  } else {
    MmaByTaps<F, 0>(shape, loader, cta, layer, desc, batch, pipeline, weights, input, accumulators);
  }
  WaitAtBarrier<kMmaBarrier>();
  sender.Send(accumulators);
  if (!shape.HasShortcut()) return;
  sender.GoToShortcut(desc, pass, 0);
  sender.Send(ShortcutAccumulators(accumulators, input, 2 * sender.part));
  // the next input takes the shortcut's place
  if (!replaces_input) WaitAtBarrier<kMmaBarrier>();
}

// All layers of a pass without warp specialisation.
template <Format F>
__device__ __forceinline__ void RunUnspecializedLayers(CtaState& cta, const Layer* layers,
                                                       const LayerDescriptor* descriptors,
                                                       int count, EpilogueThread thread,
                                                       WeightPipeline& pipeline, uint8_t* input,
                                                       uint8_t* accumulators, uint32_t pass) {
  SetTimestep(cta, thread);
  float4 residual = make_float4(0, 0, 0, 0);
  for (int i = 0; i < count; ++i) {
    if (descriptors[i].has_work)
      RunUnspecializedLayer<F>(cta, layers[i], descriptors[i], pipeline, input, accumulators, pass);
    ChannelTerms terms;
    RunEpilogue<Storage<F>, 0>(cta, layers[i], descriptors[i], thread, pass, residual, terms,
                               nullptr, [] {});
    // Joins the threads without values with those that received partial sums: the whole CTA is now
    // behind every CTA's fence (I5).
    if (i > 0 && layers[i - 1].fence) WaitAtBarrier<kMmaBarrier>();
  }
}

// All layers of a pass by the MMA warps. Ends when the CTA has published its last tile.
template <Format F, int kRowBatches>
__device__ __forceinline__ void RunMmaLayers(CtaState& cta, const Layer* layers,
                                             const LayerDescriptor* descriptors, int count,
                                             WeightPipeline& pipeline, uint8_t* input,
                                             uint8_t* accumulators, uint8_t* local, uint32_t pass) {
  for (int i = 0; i < count; ++i) {
    if (layers[i].cta_local) {
      RunCtaLocalLayer<F, kRowBatches>(cta, layers[i], descriptors[i], pipeline, input, local);
      continue;
    }
    if (descriptors[i].has_work) {
      RunSplitKLayer<F, kRowBatches>(cta, layers[i], descriptors[i], pipeline, input, accumulators,
                                     pass);
      continue;
    }
#pragma unroll
    for (int batch = 0; batch < kRowBatches; ++batch) {
      if (i > 0) WaitAtBarrier<kActivationPublished>(batch);
      ArriveAtBarrier<kPartialSumsSent>(batch);
    }
  }
#pragma unroll
  for (int batch = 0; batch < kRowBatches; ++batch) WaitAtBarrier<kActivationPublished>(batch);
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_MMA_WARPS_CUH_
