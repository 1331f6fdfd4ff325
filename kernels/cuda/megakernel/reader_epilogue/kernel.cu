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

#include "kernels/cuda/megakernel/args.cuh"
#include "kernels/cuda/megakernel/reader_epilogue/head.cuh"
#include "kernels/cuda/megakernel/reader_epilogue/small_batch.cuh"
#include "kernels/cuda/megakernel/sampler_step.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp {
namespace {

// Offsets of what stands in shared memory beside ring and input.
struct SharedPlan {
  int stages, tiles, sources, outputs, x, first, head, head_bias, timesteps, states, kept, moments,
      end;
  __host__ __device__ SharedPlan(const ChainArgs& a) {
    const int elements = a.length * a.action_dim, rows = a.rows, stage_count = a.stage_count;
    const int ring_chunks = ChainRingChunks(a.wide_warps ? 2 : 1);
    stages = kChainWarps * ring_chunks * kChunkBytes;
    tiles = stages + stage_count * static_cast<int>(sizeof(ChainStage));
    sources =
        (tiles + stage_count * kChainWarps * static_cast<int>(sizeof(WarpTile)) + 15) / 16 * 16;
    const int narrow = a.wide_warps ? 0 : stage_count;
    outputs = sources + (narrow ? narrow + 1 : 0) * static_cast<int>(sizeof(NarrowSource));
    x = outputs + narrow * static_cast<int>(sizeof(NarrowOutput));
    first = x + ChainXBytes(a);
    head = first + (a.first.taps + 1) * a.first.in_c * a.first.out_c * 4;
    head_bias = head + a.last.channels * a.action_dim * 4;
    timesteps = head_bias + a.action_dim * 4;
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
  const NarrowOutput* outputs;  // of the stages, likewise
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
      RunNarrowStage<F>(b, s.stages[i], tile, s.sources[i], s.outputs[i], s.stream, s.work, s.sums);
    } else {
      RunStage<F, MI>(b, s.stages[i], tile, s.stream, s.work, s.sums);
    }
  }
  RunHead<Storage<F>, MI>(b, s.sources + b.a.stage_count, s.work);
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
                  reinterpret_cast<const float*>(shared + plan.head_bias),
                  reinterpret_cast<float2*>(shared + plan.moments),
                  0,
                  reinterpret_cast<int*>(shared + plan.timesteps),
                  WaitWatch(a.stuck)};
  const uint32_t before = *a.passes;
  LoadStages(stages, a.stages, a.stage_count);
  LoadEnds(b, reinterpret_cast<float*>(shared + plan.first),
           reinterpret_cast<float*>(shared + plan.head),
           reinterpret_cast<float*>(shared + plan.head_bias), 0, 1);
  for (int i = threadIdx.x; i < a.stage_count * kChainWarps; i += kChainThreads)
    tiles[i] = MakeTile(stages[i / kChainWarps], MI, i % kChainWarps);
  auto* sources = reinterpret_cast<NarrowSource*>(shared + plan.sources);
  auto* outputs = reinterpret_cast<NarrowOutput*>(shared + plan.outputs);
  for (int i = threadIdx.x; MI == 1 && i < a.stage_count; i += kChainThreads) {
    const WarpTile tile = MakeTile(stages[i], MI, 0);
    sources[i] = MakeStageSource(stages[i], tile);
    outputs[i] = MakeOutput(stages[i], tile);
  }
  if (MI == 1 && threadIdx.x == kChainThreads - 1)
    sources[a.stage_count] = MakeHeadSource(a, 2 * HeadPitch(a.last));
  __syncthreads();
  ChainShared<MI> s = {stages,
                       tiles + warp,
                       sources,
                       outputs,
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
  const StepTeam team = {
      static_cast<int>(threadIdx.x), kChainThreads, 0, 1, a.rows, blockIdx.x == 0};
  const int passes = RunPasses<(MI > 1), true>(
      b, s.windows, team, [&](int pass) { RunPass<F, MI>(b, s, before + pass); });
  // by now every block has read it: this one could not have finished without them
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.passes = before + passes;
  WaitCopies<0>();
}

template <Format F>
void LaunchTiles(const ChainArgs& a, size_t shared_bytes, cudaStream_t stream) {
  if (a.wide_warps) {
    LaunchPersistent<UnetChainKernel<F, 2>>(a, a.blocks, shared_bytes, stream);
  } else {
    LaunchPersistent<UnetChainKernel<F, 1>>(a, a.blocks, shared_bytes, stream);
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

}  // namespace mjp
