// A denoising chain of up to 32 rows in one persistent launch: bound by the latency between layers.
//
// wide_chain.cuh says how the blocks share a layer. While a warp multiplies, its weights of the
// next layer come to shared memory, over the borders of layers and passes; they go to registers
// before the layer's input has come. A layer is: collect finished activations, multiply, send the
// sums, finish the block's item of each wave. Where the items are small, some threads multiply and
// others finish: what either needs beside the numbers it waits for is ready when they come, which
// is most of a layer otherwise. Bytes: weights once per team's rows and pass; activations and sums
// from L2, whose boxes are used in turn so that they stay there.

#include <algorithm>

#include "kernels/cuda/megakernel/mma_warps.cuh"
#include "kernels/cuda/megakernel/sampler_step.cuh"

namespace mjp {
namespace {

// Offsets of what stands in shared memory behind the weights and before the input; left: whether
// another pass comes.
struct WidePlan {
  int stages, tiles, routes, x, first, head, head_bias, timesteps, states, kept, moments, rests,
      left, end;
  __host__ __device__ WidePlan(const WideChainArgs& w) {
    const ChainArgs& a = w.chain;
    const int elements = a.length * a.action_dim, rows = a.rows;
    stages = kChainWarps * static_cast<int>(sizeof(WideBuffer));
    tiles = stages + w.stage_count * static_cast<int>(sizeof(WideStage));
    routes = tiles + w.stage_count * static_cast<int>(sizeof(WideTile));
    x = routes + w.stage_count * static_cast<int>(sizeof(WideRoute));
    first = x + ChainXBytes(a);
    head = first + (a.first.taps + 1) * a.first.in_c * (a.first.out_c / kWideGroups) * 4;
    head_bias = head + a.last.channels / kWideGroups * a.action_dim * 4;
    timesteps = head_bias + a.action_dim * 4;
    states = timesteps + rows * 4;
    kept = states + rows * static_cast<int>(sizeof(PicardState));
    moments = (kept + (a.picard.window > 0 ? 2 * rows * elements * 4 : 0) + 15) / 16 * 16;
    rests = moments + kChainWarps * 8;
    left = rests + (w.roles ? w.waves * kWideFinishers * 16 : 0);
    end = (left + 1 + 127) / 128 * 128;
  }
};

// Registers of a thread where threads have roles: of those that multiply and those that finish;
// together at most as many as the launch gives the block.
template <int kWaves>
constexpr int kMultiplierRegisters = kWaves == 1 ? 192 : 184;
template <int kWaves>
constexpr int kFinisherRegisters = kWaves == 1 ? 120 : 136;
template <int kWaves>
constexpr bool kEnoughRegisters =
    kMultiplierRegisters<kWaves>* kChainThreads + kFinisherRegisters<kWaves>* kWideFinishers <=
    65536 / kWideThreads / 8 * 8 * kWideThreads;
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

// Who takes steps: `threads` threads of each block those of its own rows, so that it waits for no
// other rows' words; where its rows are not used, of the last row, whose x it reads. Those of the
// pass before have been read once a block writes any: by then all blocks are in its pass
// (KeepBlocksTogether).
__device__ __forceinline__ StepTeam MakeStepTeam(int waves, int thread, int threads) {
  const WideItem item = ItemOfBlock(blockIdx.x);
  return {thread, threads, item.slot, kWideSlots, waves, item.group == 0};
}

// All passes, by the threads that finish. Step by step they take the steps too, and those that
// multiply go on to the next pass's weights; windows are swept by those.
template <Format F, int kWaves>
__device__ __forceinline__ void FinishPasses(ChainBlock& b, const WideStage* stages,
                                             const WideRoute* routes, int count,
                                             const PicardState* states, const volatile bool* left,
                                             const uint8_t* whole, float4* rests, uint32_t before) {
  const bool windows = b.a.picard.window > 0;
  const WideItem item = ItemOfBlock(blockIdx.x);
  const WideThread first = MakeWideThread(b, item, 0, 0);
  const WideThread second = MakeWideThread(b, item, kWaves - 1, 0);
  WaitAtBarrier<kPassBarrier>();
  const StepTeam team = MakeStepTeam(kWaves, ThisThread() - kChainThreads, kWideFinishers);
  StepCount steps;
  if (!windows) steps = CountSteps(b.a, states);
  for (int pass = 1; windows ? *left : pass <= steps.passes; ++pass) {
    b.parity = (before + pass) & 1;
    FinishStages<F, kWaves>(b, stages, routes, count, whole, rests, before + pass - 1, first,
                            second);
    if (windows) {
      WaitAtBarrier<kPassBarrier>();
    } else {
      EndStep(b, states, steps, pass, team);
      WaitAtBarrier<kStepBarrier>();
    }
  }
}

// Brings into shared memory what all passes need beside the weights that come. By the threads that
// multiply, for all.
template <Format F>
__device__ __forceinline__ void LoadBlock(const ChainBlock& b, const WideChainArgs& w,
                                          const WidePlan& plan, uint8_t* shared) {
  auto* stages = reinterpret_cast<WideStage*>(shared + plan.stages);
  auto* tiles = reinterpret_cast<WideTile*>(shared + plan.tiles);
  auto* routes = reinterpret_cast<WideRoute*>(shared + plan.routes);
  LoadStages(stages, w.stages, w.stage_count);
  const WideItem item = ItemOfBlock(blockIdx.x);
  LoadEnds(b, reinterpret_cast<float*>(shared + plan.first),
           reinterpret_cast<float*>(shared + plan.head),
           reinterpret_cast<float*>(shared + plan.head_bias), item.group, kWideGroups);
  for (int i = threadIdx.x; i < w.stage_count; i += kChainThreads) {
    tiles[i] = MakeWideTile(stages[i], item);
    routes[i] = MakeWideRoute<Storage<F>>(w, stages[i], item);
  }
  if (threadIdx.x == 0) *reinterpret_cast<volatile bool*>(shared + plan.left) = true;
  SyncPicardThreads();
  for (int i = threadIdx.x; i < w.stage_count; i += kChainThreads)
    routes[i].next = NextTile(tiles, w.stage_count, i);
  SyncPicardThreads();
}

// grid: (kWideBlocks), all resident
template <Format F, int kWaves>
__global__ void __launch_bounds__(kWaves > 0 ? kWideThreads : kChainThreads, 1)
    WideChainKernel(const __grid_constant__ WideChainArgs w) {
  constexpr bool kRoles = kWaves > 0;
  extern __shared__ __align__(128) uint8_t shared[];
  if constexpr (!kHaveWgmma) return;
  const ChainArgs& a = w.chain;
  if (NothingLeft(a)) return;
  const WidePlan plan(w);
  auto* stages = reinterpret_cast<WideStage*>(shared + plan.stages);
  auto* routes = reinterpret_cast<WideRoute*>(shared + plan.routes);
  auto* left = reinterpret_cast<volatile bool*>(shared + plan.left);
  ChainBlock b = {a,
                  reinterpret_cast<float*>(shared + plan.x),
                  reinterpret_cast<const float*>(shared + plan.first),
                  reinterpret_cast<const float*>(shared + plan.head),
                  reinterpret_cast<const float*>(shared + plan.head_bias),
                  reinterpret_cast<float2*>(shared + plan.moments),
                  0,
                  reinterpret_cast<int*>(shared + plan.timesteps),
                  WaitWatch(a.stuck)};
  auto* states = reinterpret_cast<PicardState*>(shared + plan.states);
  const uint32_t before = *a.passes;
  if (kRoles && threadIdx.x >= kChainThreads) {
    SetRegisters<false, kFinisherRegisters<kWaves>>();
    return FinishPasses<F, kWaves>(b, stages, routes, w.stage_count, states, left,
                                   shared + plan.end + w.whole_offset,
                                   reinterpret_cast<float4*>(shared + plan.rests), before);
  }
  if constexpr (kRoles) SetRegisters<true, kMultiplierRegisters<kWaves>>();
  const ChainWindows windows = {states, reinterpret_cast<float*>(shared + plan.kept),
                                shared + plan.end, reinterpret_cast<int*>(shared + plan.moments)};
  LoadBlock<F>(b, w, plan, shared);
  const WideThread thread = MakeWideThread(b, ItemOfBlock(blockIdx.x), 0, threadIdx.x);
  WideStream stream;
  stream.thread = threadIdx.x;
  stream.Begin(reinterpret_cast<WideTile*>(shared + plan.tiles), w.stage_count);
  uint8_t* input = shared + plan.end;
  uint8_t *sums = input + w.sums_offset, *whole = input + w.whole_offset;
  const StepTeam team = MakeStepTeam(1, threadIdx.x, kChainThreads);
  const bool sweeps = a.picard.window > 0;
  const int passes = RunPasses<true, !kRoles>(
      b, windows, team, [&](int pass) __attribute__((always_inline)) {
        const uint32_t number = before + pass;
        b.parity = number & 1;
        if constexpr (kRoles) {
          if (sweeps || pass == 1) ArriveAtBarrier<kPassBarrier>();
          MultiplyStages<F, kWaves>(b, stages, routes, w.stage_count, stream, input, sums, whole,
                                    number - 1);
        } else {
          SyncPicardThreads();
          RunStages<F>(b, stages, routes, w.stage_count, thread, stream, input, sums, number - 1);
          SyncPicardThreads();
        }
      });
  if (kRoles && sweeps) {
    if (threadIdx.x == 0) *left = false;
    ArriveAtBarrier<kPassBarrier>();
  }
  // by now every block has read it: this one could not have finished without them
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.passes = before + passes;
  stream.Wait();  // what is under way would write to no one
}

}  // namespace

// Bytes of a stage's sums, both warpgroups' parts.
static size_t SumsBytes(const WideStage& s, Format format) {
  const int positions = s.shape.out_length << s.rows_log2;
  return size_t{2} * (format == Format::kFp16 ? WideSumsPlace<__half>::Part(positions)
                                              : WideSumsPlace<__nv_bfloat16>::Part(positions));
}

WideSpace PlanWideSpace(const std::vector<WideStage>& stages, const WideChainArgs& w, size_t room) {
  constexpr size_t kBeyond = 64;  // products of 4 positions read 8
  size_t input = 0, sums = 0, beside = 0, whole = 0, behind_whole = 0;
  bool behind = false;
  for (const WideStage& s : stages) {
    if (s.shape.in_c == 0) continue;
    const size_t channels = s.whole ? kWholeChannels : kWideFilling, bytes = SumsBytes(s, w.format);
    input = std::max(input, (channels * 2 * s.places << s.rows_log2) + kBeyond);
    if (s.whole) {
      whole = size_t{kWideMaxWaves} * kWholeBytes;
    } else {
      sums = std::max(sums, bytes);
      if (behind) behind_whole = std::max(behind_whole, bytes);
      if (s.shape.residual && !w.roles) beside = std::max(beside, bytes);
    }
    behind = s.whole;
  }
  // the next stage's come while those of a whole item's second wave are read; later ones do not
  sums = std::max(sums, behind_whole + whole);
  const size_t before = WidePlan(w).end, apart = (std::max(input, beside) + 127) / 128 * 128;
  const size_t sweep = PicardStageBytes(w.chain.picard.window, w.chain.length * w.chain.action_dim);
  const size_t all = before + std::max(sweep, apart + sums);
  if (w.roles || all <= room)
    return {all, static_cast<int>(apart), static_cast<int>(apart + sums - whole)};
  return {before + std::max({sweep, input, sums, 2 * beside}), 0, 0};
}

template <Format F>
static void Launch(const WideChainArgs& w, size_t shared_bytes, cudaStream_t stream) {
  if (!w.roles)
    return LaunchPersistent<WideChainKernel<F, 0>>(w, kWideBlocks, shared_bytes, stream);
  if (w.waves == 1)
    return LaunchPersistent<WideChainKernel<F, 1>>(w, kWideBlocks, shared_bytes, stream,
                                                   kWideThreads);
  LaunchPersistent<WideChainKernel<F, 2>>(w, kWideBlocks, shared_bytes, stream, kWideThreads);
}

void LaunchWideChain(const WideChainArgs& w, size_t shared_bytes, cudaStream_t stream) {
  if (w.format == Format::kFp16) return Launch<Format::kFp16>(w, shared_bytes, stream);
  if (w.format == Format::kBf16) return Launch<Format::kBf16>(w, shared_bytes, stream);
  throw Unsupported("the denoising chain has fp16 and bf16 kernels alone");
}

}  // namespace mjp
