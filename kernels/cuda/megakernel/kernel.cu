// The persistent U-Net megakernel of up to 32 rows: bound by the latency between layers.
//
// megakernel.cuh says how the CTAs split a layer; README.md draws it. While a warp multiplies, its
// weights of the next layer are copied to shared memory, across layers and passes; they are in
// registers before the layer's input arrives. A layer is: receive activations, multiply, send
// partial sums; receive those of the own output tile, run the epilogue, publish. With warp
// specialisation (roles as in HazyResearch's Megakernels) MMA warps do the first half and epilogue
// warps the second: whatever either needs besides the values it polls is ready when they arrive.
// Bytes: weights once per CTA group's rows and pass; activations and partial sums from L2, where
// the exchange buffers stay, since each is used again soon.

#include <algorithm>

#include "kernels/cuda/megakernel/mma_warps.cuh"
#include "kernels/cuda/megakernel/sampler_step.cuh"

namespace mjp::megakernel {
namespace {

// Offsets in shared memory: the weight buffers are at 0, the input at `end`. more_passes: the MMA
// warps tell the epilogue warps whether another pass follows.
struct SmemLayout {
  int layers, tiles, descriptors, x, first, head, head_bias, timesteps, states, previous, moments,
      residuals, more_passes, end;
  __host__ __device__ SmemLayout(const Args& args) {
    const CommonArgs& a = args.common;
    const int elements = a.length * a.action_dim, rows = a.rows;
    layers = kMmaWarps * static_cast<int>(sizeof(WeightBuffer));
    tiles = layers + args.layer_count * static_cast<int>(sizeof(Layer));
    descriptors = tiles + args.layer_count * static_cast<int>(sizeof(WeightTile));
    x = descriptors + args.layer_count * static_cast<int>(sizeof(LayerDescriptor));
    first = x + XBytes(a);
    head = first + (a.first.taps + 1) * a.first.in_c * (a.first.out_c / kNormGroups) * 4;
    head_bias = head + a.last.channels / kNormGroups * a.action_dim * 4;
    timesteps = head_bias + a.action_dim * 4;
    states = timesteps + rows * 4;
    previous = states + rows * static_cast<int>(sizeof(PicardState));
    moments = (previous + (a.picard.window > 0 ? 2 * rows * elements * 4 : 0) + 15) / 16 * 16;
    residuals = moments + kMmaWarps * 8;
    more_passes =
        residuals + (args.warp_specialized ? args.row_batches * kEpilogueThreads * 16 : 0);
    end = (more_passes + 1 + 127) / 128 * 128;
  }
};

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
template <bool kMore, int kRegisters>
__device__ __forceinline__ void SetRegisters() {
#ifdef MJP_HAVE_WGMMA
  if constexpr (kMore) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
  }
#endif
}

// The sampler steps: `threads` threads of each CTA run those of its own rows, so that it polls no
// other rows' head partial sums; a CTA of an unused row runs that of the last row, whose x it
// reads. These partial sums need one buffer alone: when a CTA sends some all others are in the same
// pass, and have read those of the pass before (SkewIsBounded).
__device__ __forceinline__ SamplerThreads MakeSamplerThreads(int row_batches, int thread,
                                                             int threads) {
  const OutputTile tile = TileOfCta(blockIdx.x);
  return {thread, threads, tile.row_slot, kRowsPerBatch, row_batches, tile.group == 0};
}

// All passes by the epilogue warps. Step by step they run the sampler too, while the MMA warps
// prefetch the next pass' weights; Picard windows are swept by the MMA warps.
template <Format F, int kRowBatches>
__device__ __forceinline__ void RunEpilogueWarps(CtaState& cta, const Layer* layers,
                                                 const LayerDescriptor* descriptors, int count,
                                                 const PicardState* states,
                                                 const volatile bool* more_passes,
                                                 const uint8_t* local, float4* residuals,
                                                 uint32_t before) {
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
    RunEpilogueLayers<F, kRowBatches>(cta, layers, descriptors, count, local, residuals,
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

// grid: (kCtas), all resident
template <Format F, int kRowBatches>
__global__ void __launch_bounds__(kRowBatches > 0 ? kSpecializedThreads : kMmaThreads, 1)
    UnetMegakernel(const __grid_constant__ Args args) {
  constexpr bool kWarpSpecialized = kRowBatches > 0;
  extern __shared__ __align__(128) uint8_t shared[];
  if constexpr (!kHaveWgmma) return;
  const CommonArgs& a = args.common;
  if (NothingToDo(a)) return;
  const SmemLayout smem(args);
  auto* layers = reinterpret_cast<Layer*>(shared + smem.layers);
  auto* descriptors = reinterpret_cast<LayerDescriptor*>(shared + smem.descriptors);
  auto* more_passes = reinterpret_cast<volatile bool*>(shared + smem.more_passes);
  CtaState cta = {a,
                  reinterpret_cast<float*>(shared + smem.x),
                  reinterpret_cast<const float*>(shared + smem.first),
                  reinterpret_cast<const float*>(shared + smem.head),
                  reinterpret_cast<const float*>(shared + smem.head_bias),
                  reinterpret_cast<float2*>(shared + smem.moments),
                  0,
                  reinterpret_cast<int*>(shared + smem.timesteps),
                  SpinWatchdog(a.timed_out)};
  auto* states = reinterpret_cast<PicardState*>(shared + smem.states);
  const uint32_t before = *a.pass_count;
  if (kWarpSpecialized && threadIdx.x >= kMmaThreads) {
    SetRegisters<false, kEpilogueRegisters<kRowBatches>>();
    return RunEpilogueWarps<F, kRowBatches>(cta, layers, descriptors, args.layer_count, states,
                                            more_passes, shared + smem.end + args.local_offset,
                                            reinterpret_cast<float4*>(shared + smem.residuals),
                                            before);
  }
  if constexpr (kWarpSpecialized) SetRegisters<true, kMmaRegisters<kRowBatches>>();
  const PicardWindows windows = {states, reinterpret_cast<float*>(shared + smem.previous),
                                 shared + smem.end, reinterpret_cast<int*>(shared + smem.moments)};
  LoadCta<F>(cta, args, smem, shared);
  const EpilogueThread thread = MakeEpilogueThread(cta, TileOfCta(blockIdx.x), 0, threadIdx.x);
  WeightPipeline pipeline;
  pipeline.thread = threadIdx.x;
  pipeline.Begin(reinterpret_cast<WeightTile*>(shared + smem.tiles), args.layer_count);
  uint8_t* input = shared + smem.end;
  uint8_t *accumulators = input + args.accumulator_offset, *local = input + args.local_offset;
  const SamplerThreads sampler = MakeSamplerThreads(1, threadIdx.x, kMmaThreads);
  const bool windowed = a.picard.window > 0;
  const int passes = RunPasses<true, !kWarpSpecialized>(
      cta, windows, sampler, [&](int pass) __attribute__((always_inline)) {
        const uint32_t number = before + pass;
        cta.epoch = number & 1;
        if constexpr (kWarpSpecialized) {
          if (windowed || pass == 1) ArriveAtBarrier<kPassBarrier>();
          RunMmaLayers<F, kRowBatches>(cta, layers, descriptors, args.layer_count, pipeline, input,
                                       accumulators, local, number - 1);
        } else {
          SyncPicardThreads();
          RunUnspecializedLayers<F>(cta, layers, descriptors, args.layer_count, thread, pipeline,
                                    input, accumulators, number - 1);
          SyncPicardThreads();
        }
      });
  if (kWarpSpecialized && windowed) {
    if (threadIdx.x == 0) *more_passes = false;
    ArriveAtBarrier<kPassBarrier>();
  }
  // all CTAs have read it: this one could not have finished without them
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.pass_count = before + passes;
  pipeline.Wait();  // a copy must not outlive its CTA
}

}  // namespace

// Bytes of a layer's accumulators, both warpgroups' parts.
static size_t AccumulatorBytes(const Layer& s, Format format) {
  const int positions = s.shape.out_length << s.rows_log2;
  return size_t{2} * (format == Format::kFp16 ? AccumulatorLayout<__half>::Part(positions)
                                              : AccumulatorLayout<__nv_bfloat16>::Part(positions));
}

SharedSpace PlanSharedSpace(const std::vector<Layer>& layers, const Args& args, size_t room) {
  constexpr size_t kBeyond = 64;  // the mma of 4 positions reads 8
  size_t input = 0, accumulators = 0, shortcut = 0, local = 0, after_local = 0;
  bool follows_local = false;
  for (const Layer& s : layers) {
    if (s.shape.in_c == 0) continue;
    const size_t channels = s.cta_local ? kLocalBlockK : kBlockK,
                 bytes = AccumulatorBytes(s, args.format);
    input = std::max(input, (channels * 2 * s.padded_length << s.rows_log2) + kBeyond);
    if (s.cta_local) {
      local = size_t{kMaxRowBatches} * kLocalAccumulatorBytes;
    } else {
      accumulators = std::max(accumulators, bytes);
      if (follows_local) after_local = std::max(after_local, bytes);
      if (s.shape.shortcut && !args.warp_specialized) shortcut = std::max(shortcut, bytes);
    }
    follows_local = s.cta_local;
  }
  // the next layer's are put while those of a CTA-local layer's second batch are read; later ones
  // not
  accumulators = std::max(accumulators, after_local + local);
  const size_t before = SmemLayout(args).end,
               behind_input = (std::max(input, shortcut) + 127) / 128 * 128;
  const size_t sweep =
      PicardScratchBytes(args.common.picard.window, args.common.length * args.common.action_dim);
  const size_t all = before + std::max(sweep, behind_input + accumulators);
  if (args.warp_specialized || all <= room)
    return {all, static_cast<int>(behind_input),
            static_cast<int>(behind_input + accumulators - local)};
  return {before + std::max({sweep, input, accumulators, 2 * shortcut}), 0, 0};
}

template <Format F>
static void Launch(const Args& args, size_t shared_bytes, cudaStream_t stream) {
  if (!args.warp_specialized)
    return LaunchPersistent<UnetMegakernel<F, 0>>(args, kCtas, shared_bytes, stream);
  if (args.row_batches == 1)
    return LaunchPersistent<UnetMegakernel<F, 1>>(args, kCtas, shared_bytes, stream,
                                                  kSpecializedThreads);
  LaunchPersistent<UnetMegakernel<F, 2>>(args, kCtas, shared_bytes, stream, kSpecializedThreads);
}

void LaunchMegakernel(const Args& args, size_t shared_bytes, cudaStream_t stream) {
  if (args.format == Format::kFp16) return Launch<Format::kFp16>(args, shared_bytes, stream);
  if (args.format == Format::kBf16) return Launch<Format::kBf16>(args, shared_bytes, stream);
  throw Unsupported("the megakernel has fp16 and bf16 kernels alone");
}

}  // namespace mjp::megakernel
