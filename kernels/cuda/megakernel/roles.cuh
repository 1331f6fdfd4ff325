#ifndef KERNELS_CUDA_MEGAKERNEL_ROLES_CUH_
#define KERNELS_CUDA_MEGAKERNEL_ROLES_CUH_

#include "kernels/cuda/megakernel/mma_warps.cuh"
#include "kernels/cuda/megakernel/sampler_step.cuh"
#include "kernels/cuda/megakernel/smem_layout.cuh"

// The roles of a CTA's warps: their registers, set-up, and the main loop of each over all passes.

namespace mjp::megakernel {

// Registers of a thread of the MMA warps and of the epilogue warps; together at most as many as the
// launch gives the CTA.
template <int kRowBatches>
constexpr int kMmaRegisters = kRowBatches == 1 ? 192 : 184;
template <int kRowBatches>
constexpr int kEpilogueRegisters = kRowBatches == 1 ? 120 : 136;
template <int kRowBatches>
constexpr bool kEnoughRegisters =
    kMmaRegisters<kRowBatches>* kMmaThreads + kEpilogueRegisters<kRowBatches>* kEpilogueThreads <=
    65536 / kSpecializedThreads / 8 * 8 * kSpecializedThreads;
static_assert(kEnoughRegisters<1> && kEnoughRegisters<2>);
// The sampler steps: `threads` threads of each CTA run those of its own rows, so that it polls no
// other rows' head partial sums; a CTA of an unused row runs that of the last row, whose x it
// reads. These partial sums need one buffer alone: README.md, I7.
__device__ __forceinline__ SamplerThreads MakeSamplerThreads(int row_batches, int thread,
                                                             int threads) {
  const OutputTile tile = TileOfCta(blockIdx.x);
  return {thread, threads, tile.row_slot, kRowsPerBatch, row_batches, tile.group == 0};
}

// All passes by the epilogue warps; `before`: passes that ever ran before this launch. Step by step
// they run the sampler too, while the MMA warps prefetch the next pass' weights; Picard windows are
// swept by the MMA warps.
template <Format F, int kRowBatches>
__device__ __forceinline__ void RunEpilogueWarps(CtaState& cta, const Args& args,
                                                 const SmemLayout& smem, uint8_t* shared,
                                                 uint32_t before) {
  const auto* layers = reinterpret_cast<const Layer*>(shared + smem.layers);
  const auto* descriptors = reinterpret_cast<const LayerDescriptor*>(shared + smem.descriptors);
  const auto* states = reinterpret_cast<const PicardState*>(shared + smem.states);
  const auto* more_passes = reinterpret_cast<const volatile bool*>(shared + smem.more_passes);
  const uint8_t* local = shared + smem.end + args.local_offset;
  auto* residuals = reinterpret_cast<float4*>(shared + smem.residuals);
  const bool windows = cta.a.picard.window > 0;
  const OutputTile tile = TileOfCta(blockIdx.x);
  const EpilogueThread first = MakeEpilogueThread(cta, tile, 0, 0);
  const EpilogueThread second = MakeEpilogueThread(cta, tile, kRowBatches - 1, 0);
  WaitAtBarrier<kPassBarrier>();
  const SamplerThreads sampler =
      MakeSamplerThreads(kRowBatches, RematerializeTid() - kMmaThreads, kEpilogueThreads);
  StepCount steps;
  if (!windows) steps = CountSteps(cta.a, states);
  for (int pass = 1; windows ? *more_passes : pass <= steps.passes; ++pass) {
    cta.epoch = (before + pass) & 1;
    RunEpilogueLayers<F, kRowBatches>(cta, layers, descriptors, args.layer_count, local, residuals,
                                      before + pass - 1, first, second);
    if (windows) {
      WaitAtBarrier<kPassBarrier>();
    } else {
      EndSequentialPass(cta, states, steps, pass, sampler);
      WaitAtBarrier<kStepBarrier>();
    }
  }
}

// Copies into shared memory what all passes need besides the weights of the pipeline. By the MMA
// warps, for all.
template <Format F>
__device__ __forceinline__ void LoadCta(const CtaState& cta, const Args& args,
                                        const SmemLayout& smem, uint8_t* shared) {
  auto* layers = reinterpret_cast<Layer*>(shared + smem.layers);
  auto* tiles = reinterpret_cast<WeightTile*>(shared + smem.tiles);
  auto* descriptors = reinterpret_cast<LayerDescriptor*>(shared + smem.descriptors);
  LoadLayers(layers, args.layers, args.layer_count);
  const OutputTile tile = TileOfCta(blockIdx.x);
  LoadInOutWeights(cta, reinterpret_cast<float*>(shared + smem.first),
                   reinterpret_cast<float*>(shared + smem.head),
                   reinterpret_cast<float*>(shared + smem.head_bias), tile.group, kNormGroups);
  for (int i = threadIdx.x; i < args.layer_count; i += kMmaThreads) {
    tiles[i] = MakeWeightTile(layers[i], tile);
    descriptors[i] = MakeLayerDescriptor<Storage<F>>(args, layers[i], tile);
  }
  if (threadIdx.x == 0) *reinterpret_cast<volatile bool*>(shared + smem.more_passes) = true;
  SyncPicardThreads();
  for (int i = threadIdx.x; i < args.layer_count; i += kMmaThreads)
    descriptors[i].next_weights = NextWeightTile(tiles, args.layer_count, i);
  SyncPicardThreads();
}

// Ends a launch after `passes` passes that ever ran.
__device__ __forceinline__ void EndLaunch(const CommonArgs& a, uint32_t passes,
                                          WeightPipeline& pipeline) {
  // all CTAs have read it: this one could not have finished without them
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.pass_count = passes;
  pipeline.Wait();  // a copy must not outlive its CTA
}

// All passes by the MMA warps, which set the CTA up for both roles. Without warp specialisation
// (kRowBatches 0) they run the epilogue and the sampler too.
template <Format F, int kRowBatches>
__device__ __forceinline__ void RunMmaWarps(CtaState& cta, const Args& args, const SmemLayout& smem,
                                            uint8_t* shared, uint32_t before) {
  constexpr bool kWarpSpecialized = kRowBatches > 0;
  const auto* layers = reinterpret_cast<const Layer*>(shared + smem.layers);
  const auto* descriptors = reinterpret_cast<const LayerDescriptor*>(shared + smem.descriptors);
  const PicardWindows windows = {reinterpret_cast<PicardState*>(shared + smem.states),
                                 reinterpret_cast<float*>(shared + smem.previous),
                                 shared + smem.end, reinterpret_cast<int*>(shared + smem.moments)};
  LoadCta<F>(cta, args, smem, shared);
  const EpilogueThread thread = MakeEpilogueThread(cta, TileOfCta(blockIdx.x), 0, threadIdx.x);
  WeightPipeline pipeline;
  pipeline.thread = threadIdx.x;
  pipeline.Begin(reinterpret_cast<WeightTile*>(shared + smem.tiles), args.layer_count);
  uint8_t* input = shared + smem.end;
  uint8_t *accumulators = input + args.accumulator_offset, *local = input + args.local_offset;
  const SamplerThreads sampler = MakeSamplerThreads(1, threadIdx.x, kMmaThreads);
  const bool windowed = cta.a.picard.window > 0;
  const int passes = RunPasses<!kWarpSpecialized>(
      cta, windows, sampler, [&](int pass) __attribute__((always_inline)) {
        cta.epoch = (before + pass) & 1;
        if constexpr (kWarpSpecialized) {
          if (windowed || pass == 1) ArriveAtBarrier<kPassBarrier>();
          RunMmaLayers<F, kRowBatches>(cta, layers, descriptors, args.layer_count, pipeline, input,
                                       accumulators, local, before + pass - 1);
        } else {
          SyncPicardThreads();
          RunUnspecializedLayers<F>(cta, layers, descriptors, args.layer_count, thread, pipeline,
                                    input, accumulators, before + pass - 1);
          SyncPicardThreads();
        }
      });
  if (kWarpSpecialized && windowed) {
    if (threadIdx.x == 0) *reinterpret_cast<volatile bool*>(shared + smem.more_passes) = false;
    ArriveAtBarrier<kPassBarrier>();
  }
  EndLaunch(cta.a, before + passes, pipeline);
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_ROLES_CUH_
