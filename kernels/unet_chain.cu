// A denoising chain in one persistent launch, for few rows: bound by the latency between layers.
//
// Block b makes the same tile of a layer in every pass: m_channels out channels of its share of the
// input channels. Its weights come through a ring of shared memory per warp (cp.async: a lane reads
// back only what it copied itself), which runs ahead over the borders of layers and passes, so a
// layer finds its weights waiting. A layer is: collect the input (add the shares of the layer
// before, normalise, activate), multiply, add the warps' parts, hand the sums on as words. With
// more rows than a few the blocks first share the finishing of the layer's output (one more
// exchange, but each number is finished once).
// Bytes: weights once per row set and pass; words from L2.

#include <algorithm>

#include "kernels/chain_head.cuh"
#include "kernels/chain_narrow.cuh"
#include "kernels/cuda_check.h"
#include "kernels/device_traits.h"
#include "kernels/picard_sweep.cuh"
#include "kernels/unet_chain.cuh"

namespace dp {
namespace {

// Asks for the FiLM terms of the rows' pass after the next to be brought into the L2 cache, which
// no pass has read yet. By threads that wait for nothing else, a line each.
__device__ __forceinline__ void PrefetchTerms(const ChainBlock& b, const PicardState* states,
                                              int pass) {
  constexpr int kLine = 128 / sizeof(float);
  const FilmArgs& f = b.a.film;
  const int line = (kChainThreads - 1 - threadIdx.x) * gridDim.x + blockIdx.x;
  if (line * kLine >= f.width) return;
  for (int r = 0; r < b.a.rows; ++r) {
    const int step = min(states[r].begin + pass + 2, b.a.end - 1);
    const float* terms = f.step_table + static_cast<size_t>(b.a.schedule[step].timestep) * f.width;
    for (int i = line * kLine; i < f.width; i += kChainThreads * gridDim.x * kLine)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(terms + i));
  }
}

// Takes each row's step of pass `pass`, if it has one left, with the words of the last layer, and
// sets the timesteps of the next pass. What it needs beside the words is asked for first. A row's
// last step writes x and the network's output down.
__device__ __forceinline__ void TakeStep(ChainBlock& b, const PicardState* states, int pass) {
  const ChainArgs& a = b.a;
  const int elements = a.length * a.action_dim, items = a.last.channels / a.last.item_channels;
  for (int i = threadIdx.x; i < a.rows * elements; i += kChainThreads) {
    const int row = i / elements, e = i % elements, step = states[row].begin + pass;
    if (step >= a.end) continue;
    const DenoiseStep constants = a.schedule[step];
    const size_t at = static_cast<size_t>(step) * a.rows * elements + i;
    const float noise = a.noise ? a.noise[at] : 0.0f;
    const float* words = a.head_words + static_cast<size_t>(row) * items * elements + e;
    const float output = SumWords<kChainMaxSplits>(words, elements, items, b.parity, b.watch) +
                         b.head[a.last.channels * a.action_dim + e % a.action_dim];
    float* x = b.x + row * b.XPitch() + kMaxFirstTerms + e;
    *x = Denoise(constants, *x, output, noise);
    if (blockIdx.x != 0) continue;
    if (step + 1 == a.end) a.x[i] = *x, a.output[i] = output;
    if (a.picard.all_x) a.picard.all_x[at] = *x, a.picard.all_output[at] = output;
  }
  for (int r = threadIdx.x; r < a.rows; r += kChainThreads)
    b.timesteps[r] = a.schedule[min(states[r].begin + pass + 1, a.end - 1)].timestep;
  PrefetchTerms(b, states, pass);
}

// The next rows of an environment, whose x stand at `x`.
__device__ __forceinline__ void SetRows(const ChainBlock& b, int env, int count, const float* x) {
  const PicardArgs& a = b.a.picard;
  for (int i = threadIdx.x; i < count * a.elements; i += kChainThreads) {
    const int row = env * a.window + i / a.elements;
    b.x[row * b.XPitch() + kMaxFirstTerms + i % a.elements] = x[i];
  }
}

// What the sweeps of a block share.
struct ChainWindows {
  PicardState* states;  // shared: (environments)
  float* kept;          // shared: (environments, window, 2, elements)
  uint8_t* work;        // shared: of a sweep
  int* accepted;        // shared

  __device__ __forceinline__ PicardStage Stage(const PicardArgs& a, int env) const {
    return PlaceStage(work, a.window, a.elements,
                      kept + env * PicardKeptSize(a.window, a.elements));
  }
};

// Begins the windows of all environments, whose start stands in their first row.
__device__ __forceinline__ void StartWindows(ChainBlock& b, const ChainWindows& w) {
  const PicardArgs& a = b.a.picard;
  for (int env = 0; env < a.environments; ++env) {
    const PicardStage stage = w.Stage(a, env);
    const float* start = b.x + env * a.window * b.XPitch() + kMaxFirstTerms;
    for (int e = threadIdx.x; e < a.elements; e += kChainThreads) stage.x[e] = start[e];
    const PicardState first = BeginWindow(a, stage, env);
    SetRows(b, env, first.count, stage.x);
    if (threadIdx.x == 0) w.states[env] = first;
    __syncthreads();
  }
}

// Takes the windows of all environments on with the words of the last layer; every block does the
// same. Returns whether all chains are done or gave up.
__device__ __forceinline__ bool TakeWindows(ChainBlock& b, const ChainWindows& w) {
  const PicardArgs& a = b.a.picard;
  const int items = b.a.last.channels / b.a.last.item_channels, n = a.elements;
  bool done = true;
  for (int env = 0; env < a.environments; ++env) {
    const PicardState state = w.states[env];
    if (state.begin == a.steps || state.sequential) continue;
    const PicardStage stage = w.Stage(a, env);
    LoadPicardNoise(a, state, env, PicardReach(a, state), stage);
    for (int i = threadIdx.x; i < state.count * n; i += kChainThreads) {
      const int row = env * a.window + i / n, e = i % n;
      const float* words = b.a.head_words + static_cast<size_t>(row) * items * n + e;
      const float output = SumWords<kChainMaxSplits>(words, n, items, b.parity, b.watch) +
                           b.head[b.a.last.channels * a.action_dim + e % a.action_dim];
      StageOutput(a, state, env, i, b.x[row * b.XPitch() + kMaxFirstTerms + e], output, stage);
    }
    __syncthreads();
    const int accepted = SweepWindow(a, stage, state, env, w.accepted);
    const PicardState next = Advanced(a, state, accepted);
    const float* x = stage.x + accepted * n;
    SetRows(b, env, next.count, x);
    const bool finished = next.begin == a.steps || next.sequential;
    for (int i = threadIdx.x; finished && blockIdx.x == 0 && i < n; i += kChainThreads)
      a.x[env * n + i] = x[i];
    done = done && finished;
    __syncthreads();
    if (threadIdx.x == 0) w.states[env] = next;
  }
  return done;
}

// Offsets of what stands in shared memory beside ring and input.
struct SharedPlan {
  int stages, tiles, sources, x, first, head, timesteps, states, kept, moments, end;
  __host__ __device__ SharedPlan(const ChainArgs& a) {
    const int elements = a.length * a.action_dim, rows = a.rows, stage_count = a.stage_count;
    const int ring_chunks = ChainRingChunks(a.wide_warps ? 2 : 1);
    stages = kChainWarps * ring_chunks * kChunkBytes;
    tiles = stages + stage_count * static_cast<int>(sizeof(ChainStage));
    sources =
        (tiles + stage_count * kChainWarps * static_cast<int>(sizeof(WarpTile)) + 15) / 16 * 16;
    x = sources + (a.wide_warps ? 0 : (stage_count + 1) * static_cast<int>(sizeof(NarrowSource)));
    first = x + rows * (elements + 2 * kMaxFirstTerms) * 4;
    head = first + (a.first.taps + 1) * a.first.in_c * a.first.out_c * 4;
    timesteps = head + (a.last.channels + 1) * a.action_dim * 4;
    states = timesteps + rows * 4;
    kept = states + rows * static_cast<int>(sizeof(PicardState));
    moments = (kept + (a.picard.window > 0 ? 2 * rows * elements * 4 : 0) + 15) / 16 * 16;
    end = (moments + kChainWarps * 8 + 127) / 128 * 128;
  }
};

// What a block keeps through the chain.
template <int MI>
struct ChainShared {
  const ChainStage* stages;
  const WarpTile* tiles;        // of this warp, kChainWarps apart
  const NarrowSource* sources;  // of the stages and the head, where MI is 1
  ChainWindows windows;
  uint8_t* work;  // input of a stage
  float* sums;    // of a stage
  ChainStream<MI> stream;
};

// One pass of the network over all rows, whose timesteps are set.
template <Format F, int MI>
__device__ __forceinline__ void RunPass(ChainBlock& b, ChainShared<MI>& s, uint32_t pass) {
  b.parity = pass & 1;
  __syncthreads();
  for (int i = 0; i < b.a.stage_count; ++i) {
    const WarpTile& tile = s.tiles[i * kChainWarps];
    if constexpr (MI == 1) {
      RunNarrowStage<F>(b, s.stages[i], tile, s.sources[i], s.stream, s.work, s.sums);
    } else {
      RunStage<F, MI>(b, s.stages[i], tile, s.stream, s.work, s.sums);
    }
  }
  RunHead<Storage<F>, MI>(b, s.sources + b.a.stage_count, s.work);
  __syncthreads();
}

// Notes the time as stamp `index`.
__device__ __forceinline__ void StampPass(const ChainArgs& a, int index) {
  if (blockIdx.x == 0 && threadIdx.x == 0 && index < a.stamps.capacity)
    a.stamps.times[index] = GlobalNanoseconds();
}

// Steps up to `end`, one after the other, from `begin` on or from where a row's window gave up.
// Returns the passes.
template <Format F, int MI>
__device__ __forceinline__ uint32_t RunSteps(ChainBlock& b, ChainShared<MI>& s, uint32_t before) {
  const ChainArgs& a = b.a;
  PicardState* states = s.windows.states;
  for (int r = threadIdx.x; r < a.rows; r += kChainThreads) {
    states[r] = a.picard.state ? a.picard.state[r] : PicardState{a.begin, 0, a.begin, 0, 0};
    b.timesteps[r] = a.schedule[min(states[r].begin, a.end - 1)].timestep;
  }
  __syncthreads();
  int passes = 0, stamped = 0;
  for (int r = 0; r < a.rows; ++r) {
    passes = max(passes, a.end - states[r].begin);
    stamped = max(stamped, states[r].passes);
  }
  for (int pass = 0; pass < passes; ++pass) {
    RunPass<F, MI>(b, s, before + pass + 1);
    if (pass + 1 < passes || blockIdx.x == 0) TakeStep(b, states, pass);
    StampPass(a, stamped + pass + 1);
  }
  for (int r = threadIdx.x; a.picard.state && blockIdx.x == 0 && r < a.rows; r += kChainThreads) {
    a.picard.state[r].passes += a.end - states[r].begin;
    a.picard.state[r].begin = a.end;
  }
  return passes;
}

// The whole chain, a window of steps at a time. Returns the passes.
template <Format F, int MI>
__device__ __forceinline__ uint32_t RunWindows(ChainBlock& b, ChainShared<MI>& s, uint32_t before) {
  const PicardArgs& a = b.a.picard;
  StartWindows(b, s.windows);
  uint32_t passes = 0;
  for (bool done = false; !done; done = TakeWindows(b, s.windows)) {
    __syncthreads();
    for (int r = threadIdx.x; r < b.a.rows; r += kChainThreads) {
      const int step = min(s.windows.states[r / a.window].begin + r % a.window, a.steps - 1);
      b.timesteps[r] = a.schedule[step].timestep;
    }
    RunPass<F, MI>(b, s, before + ++passes);
    StampPass(b.a, static_cast<int>(passes));
  }
  __syncthreads();
  for (int env = threadIdx.x; blockIdx.x == 0 && env < a.environments; env += kChainThreads)
    a.state[env] = s.windows.states[env];
  return passes;
}

// Whether nothing was given up.
__device__ __forceinline__ bool NothingLeft(const ChainArgs& a) {
  if (a.picard.window > 0 || !a.picard.state) return false;
  bool done = true;
  for (int r = 0; r < a.rows; ++r) done = done && a.picard.state[r].begin == a.end;
  return done;
}

// Brings the stages, the weights of the first and the last layer and the start x, of the first row
// of each environment, into shared memory.
__device__ __forceinline__ void LoadChain(const ChainBlock& b, ChainStage* stages, float* first,
                                          float* head) {
  const ChainArgs& a = b.a;
  const int one = a.first.in_c * a.first.out_c;
  for (int i = threadIdx.x; i < one * (a.first.taps + 1); i += kChainThreads) {
    const int beside = i - one * a.first.taps;
    first[i] = beside < 0 ? a.first.weight[i] : a.first.residual_weight[beside];
  }
  const int head_weights = a.last.channels * a.action_dim;
  for (int i = threadIdx.x; i < head_weights + a.action_dim; i += kChainThreads)
    head[i] = i < head_weights ? a.head_weight[i] : a.head_bias[i - head_weights];
  const int words = a.stage_count * static_cast<int>(sizeof(ChainStage) / 4);
  for (int i = threadIdx.x; i < words; i += kChainThreads)
    reinterpret_cast<uint32_t*>(stages)[i] = reinterpret_cast<const uint32_t*>(a.stages)[i];
  const int elements = a.length * a.action_dim, window = max(1, a.picard.window);
  for (int i = threadIdx.x; i < a.rows * b.XPitch(); i += kChainThreads) {
    const int row = i / b.XPitch(), e = i % b.XPitch() - kMaxFirstTerms;
    const bool live = row % window == 0 && e >= 0 && e < elements;
    b.x[i] = live ? a.x[row / window * elements + e] : 0.0f;
  }
  __syncthreads();
}

// grid: (blocks), all resident
template <Format F, int MI>
__global__ void __launch_bounds__(kChainThreads, 1)
    UnetChainKernel(const __grid_constant__ ChainArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  if (NothingLeft(a)) return;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const SharedPlan plan(a);
  auto* stages = reinterpret_cast<ChainStage*>(shared + plan.stages);
  auto* tiles = reinterpret_cast<WarpTile*>(shared + plan.tiles);
  ChainBlock b = {a,
                  reinterpret_cast<float*>(shared + plan.x),
                  reinterpret_cast<const float*>(shared + plan.first),
                  reinterpret_cast<const float*>(shared + plan.head),
                  reinterpret_cast<float2*>(shared + plan.moments),
                  0,
                  reinterpret_cast<int*>(shared + plan.timesteps),
                  WaitWatch(a.stuck)};
  const uint32_t before = *a.passes;
  LoadChain(b, stages, reinterpret_cast<float*>(shared + plan.first),
            reinterpret_cast<float*>(shared + plan.head));
  for (int i = threadIdx.x; i < a.stage_count * kChainWarps; i += kChainThreads)
    tiles[i] = MakeTile(stages[i / kChainWarps], MI, i % kChainWarps);
  auto* sources = reinterpret_cast<NarrowSource*>(shared + plan.sources);
  for (int i = threadIdx.x; MI == 1 && i < a.stage_count; i += kChainThreads)
    sources[i] = MakeStageSource(stages[i], MakeTile(stages[i], MI, 0));
  if (MI == 1 && threadIdx.x == kChainThreads - 1)
    sources[a.stage_count] = MakeHeadSource(a, 2 * HeadPitch(a.last));
  __syncthreads();
  ChainShared<MI> s = {stages,
                       tiles + warp,
                       sources,
                       {reinterpret_cast<PicardState*>(shared + plan.states),
                        reinterpret_cast<float*>(shared + plan.kept), shared + plan.end,
                        reinterpret_cast<int*>(shared + plan.moments)},
                       shared + plan.end,
                       reinterpret_cast<float*>(shared + plan.end + a.sums_offset),
                       {}};
  s.stream.policy = EvictFirstPolicy();
  s.stream.tiles = s.tiles, s.stream.stage_count = a.stage_count, s.stream.lane = lane;
  s.stream.ring = SharedAddress(shared) + warp * ChainRingChunks(MI) * kChunkBytes + lane * 16;
  for (int i = 0; i < ChainRingChunks(MI); ++i) s.stream.Issue();
  const bool windows = MI > 1 && a.picard.window > 0;
  const uint32_t passes = windows ? RunWindows<F, MI>(b, s, before) : RunSteps<F, MI>(b, s, before);
  // by now every block has read it: this one could not have finished without them
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.passes = before + passes;
  WaitCopies<0>();
}

template <Format F, int MI>
void LaunchFormat(const ChainArgs& a, size_t shared_bytes, cudaStream_t stream) {
  const auto kernel = UnetChainKernel<F, MI>;
  static const cudaError_t allowed = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kFusedMaxSharedBytes);
  CheckCuda(allowed, "shared memory of the denoising chain");
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(a.blocks);
  config.blockDim = dim3(kChainThreads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CheckCuda(cudaLaunchKernelEx(&config, kernel, a), "denoising chain");
}

template <Format F>
void LaunchTiles(const ChainArgs& a, size_t shared_bytes, cudaStream_t stream) {
  if (a.wide_warps) {
    LaunchFormat<F, 2>(a, shared_bytes, stream);
  } else {
    LaunchFormat<F, 1>(a, shared_bytes, stream);
  }
}

}  // namespace

size_t PlanChainShared(const std::vector<ChainStage>& stages, ChainArgs& a) {
  const int mi = a.wide_warps ? 2 : 1;
  a.stage_count = static_cast<int>(stages.size());
  const SharedPlan plan(a);
  size_t work = sizeof(float) * a.length * HeadPitch(a.last), sums = 0;
  work = std::max(work, PicardStageBytes(a.picard.window, a.length * a.action_dim));
  for (const ChainStage& s : stages) {
    const size_t positions = s.layout.left + size_t{1} * s.rows * s.layout.period;
    const size_t parts = kChainWarps / (s.m_channels / (16 * mi));
    work = std::max(work, s.layout.pitch * positions);
    const size_t beside = s.shape.residual && !a.wide_warps;
    sums =
        std::max(sums, sizeof(float) * (1 + beside) * parts * s.n_tiles * 8 * (s.m_channels + 4));
  }
  if (a.wide_warps) {  // the sums take the input's place
    a.sums_offset = 0;
    return plan.end + std::max(work, sums);
  }
  a.sums_offset = static_cast<int>((work + 15) / 16 * 16);
  return plan.end + a.sums_offset + sums;
}

void LaunchUnetChain(Format format, const ChainArgs& a, size_t shared_bytes, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchTiles<Format::kFp16>(a, shared_bytes, stream);
  if (format == Format::kBf16) return LaunchTiles<Format::kBf16>(a, shared_bytes, stream);
  throw Unsupported("the denoising chain has fp16 and bf16 kernels alone");
}

}  // namespace dp
