// The reader-epilogue megakernel: a denoising chain in one persistent launch, bound by the latency
// between layers.
//
// A CTA makes the same tile of a layer in every pass: m_channels out channels over one K slice. Its
// weights are prefetched through a ring in shared memory per warp (cp.async: a lane reads back only
// what it copied itself), across layers and passes. A layer is: fill the input (receive and add the
// partial sums of the layer before, normalise, activate), multiply, add the warps' accumulators,
// send tagged partial sums. With two m16 tiles per warp, for more than a few rows, owners run the
// epilogue once instead: one more exchange. Bytes: weights once per row set and pass; partial sums
// from L2.

#include <algorithm>

#include "kernels/cuda/megakernel/args.cuh"
#include "kernels/cuda/megakernel/reader_epilogue/head.cuh"
#include "kernels/cuda/megakernel/reader_epilogue/small_batch.cuh"
#include "kernels/cuda/megakernel/sampler_step.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp::megakernel {
namespace {

// Offsets in shared memory: the weight rings are at 0, the input at `end`.
struct ReaderSmemLayout {
  int layers, tiles, sources, outputs, x, first, head, head_bias, timesteps, states, previous,
      moments, end;
  __host__ __device__ ReaderSmemLayout(const ReaderArgs& args) {
    const CommonArgs& a = args.common;
    const int elements = a.length * a.action_dim, rows = a.rows, layer_count = args.layer_count;
    const int ring_chunks = RingChunks(args.two_tiles_per_warp ? 2 : 1);
    layers = kMmaWarps * ring_chunks * kChunkBytes;
    tiles = layers + layer_count * static_cast<int>(sizeof(ReaderLayer));
    sources = (tiles + layer_count * kMmaWarps * static_cast<int>(sizeof(WarpTile)) + 15) / 16 * 16;
    const int small_layers = args.two_tiles_per_warp ? 0 : layer_count;
    outputs = sources +
              (small_layers ? small_layers + 1 : 0) * static_cast<int>(sizeof(SmallBatchSource));
    x = outputs + small_layers * static_cast<int>(sizeof(SmallBatchOutput));
    first = x + XBytes(a);
    head = first + (a.first.taps + 1) * a.first.in_c * a.first.out_c * 4;
    head_bias = head + a.last.channels * a.action_dim * 4;
    timesteps = head_bias + a.action_dim * 4;
    states = timesteps + rows * 4;
    previous = states + rows * static_cast<int>(sizeof(PicardState));
    moments = (previous + (a.picard.window > 0 ? 2 * rows * elements * 4 : 0) + 15) / 16 * 16;
    end = (moments + kMmaWarps * 8 + 127) / 128 * 128;
  }
};

// What a CTA has through the launch.
template <int MI>
struct ReaderCta {
  const ReaderArgs& args;
  const ReaderLayer* layers;
  const WarpTile* tiles;            // of this warp, kMmaWarps apart
  const SmallBatchSource* sources;  // of the layers and the head, where MI is 1
  const SmallBatchOutput* outputs;  // of the layers, likewise
  PicardWindows windows;
  uint8_t* work;        // input of a layer
  float* accumulators;  // of a layer
  ReaderWeightRing<MI> weights;
};

// One pass of the network over all rows, whose timesteps are set.
template <Format F, int MI>
__device__ __forceinline__ void RunPass(CtaState& cta, ReaderCta<MI>& s, uint32_t pass) {
  cta.epoch = pass & 1;
  __syncthreads();
  for (int i = 0; i < s.args.layer_count; ++i) {
    const WarpTile& tile = s.tiles[i * kMmaWarps];
    if constexpr (MI == 1) {
      RunSmallBatchLayer<F>(cta, s.layers[i], tile, s.sources[i], s.outputs[i], s.weights, s.work,
                            s.accumulators);
    } else {
      RunReaderLayer<F, MI>(cta, s.layers[i], tile, s.weights, s.work, s.accumulators);
    }
  }
  RunHead<Storage<F>, MI>(cta, cta.a.last, s.sources + s.args.layer_count, s.work);
  __syncthreads();
}

// grid: (CTAs), all resident
template <Format F, int MI>
__global__ void __launch_bounds__(kMmaThreads, 1)
    ReaderUnetMegakernel(const __grid_constant__ ReaderArgs args) {
  extern __shared__ __align__(128) uint8_t shared[];
  const CommonArgs& a = args.common;
  if (NothingToDo(a)) return;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const ReaderSmemLayout smem(args);
  auto* layers = reinterpret_cast<ReaderLayer*>(shared + smem.layers);
  auto* tiles = reinterpret_cast<WarpTile*>(shared + smem.tiles);
  CtaState cta = MakeCtaState(a, smem, shared);
  const uint32_t before = *a.pass_count;
  LoadLayers(layers, args.layers, args.layer_count);
  LoadInOutWeights(cta, reinterpret_cast<float*>(shared + smem.first),
                   reinterpret_cast<float*>(shared + smem.head),
                   reinterpret_cast<float*>(shared + smem.head_bias), 0, 1);
  for (int i = threadIdx.x; i < args.layer_count * kMmaWarps; i += kMmaThreads)
    tiles[i] = MakeWarpTile(layers[i / kMmaWarps], MI, i % kMmaWarps);
  auto* sources = reinterpret_cast<SmallBatchSource*>(shared + smem.sources);
  auto* outputs = reinterpret_cast<SmallBatchOutput*>(shared + smem.outputs);
  for (int i = threadIdx.x; MI == 1 && i < args.layer_count; i += kMmaThreads) {
    const WarpTile tile = MakeWarpTile(layers[i], MI, 0);
    sources[i] = MakeSmallBatchSource(layers[i], tile);
    outputs[i] = MakeOutput(layers[i], tile);
  }
  if (MI == 1 && threadIdx.x == kMmaThreads - 1)
    sources[args.layer_count] = MakeHeadSource(a.last, a.length, 2 * HeadPitch(a.last));
  __syncthreads();
  ReaderCta<MI> s = {args,
                     layers,
                     tiles + warp,
                     sources,
                     outputs,
                     {reinterpret_cast<PicardState*>(shared + smem.states),
                      reinterpret_cast<float*>(shared + smem.previous), shared + smem.end,
                      reinterpret_cast<int*>(shared + smem.moments)},
                     shared + smem.end,
                     reinterpret_cast<float*>(shared + smem.end + args.accumulator_offset),
                     {}};
  s.weights.policy = EvictFirstPolicy();
  s.weights.tiles = s.tiles, s.weights.layer_count = args.layer_count, s.weights.lane = lane;
  s.weights.ring = SharedAddress(shared) + warp * RingChunks(MI) * kChunkBytes + lane * 16;
  for (int i = 0; i < RingChunks(MI); ++i) s.weights.Issue();
  const SamplerThreads sampler = {
      static_cast<int>(threadIdx.x), kMmaThreads, 0, 1, a.rows, blockIdx.x == 0};
  const int passes = RunPasses<(MI > 1), true>(
      cta, s.windows, sampler, [&](int pass) { RunPass<F, MI>(cta, s, before + pass); });
  // all CTAs have read it: this one could not have finished without them
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.pass_count = before + passes;
  WaitCopies<0>();
}

template <Format F>
void LaunchTiles(const ReaderArgs& args, int ctas, size_t shared_bytes, cudaStream_t stream) {
  if (args.two_tiles_per_warp) {
    LaunchPersistent<ReaderUnetMegakernel<F, 2>>(args, ctas, shared_bytes, stream);
  } else {
    LaunchPersistent<ReaderUnetMegakernel<F, 1>>(args, ctas, shared_bytes, stream);
  }
}

}  // namespace

size_t PlanReaderShared(const std::vector<ReaderLayer>& layers, ReaderArgs& args) {
  const CommonArgs& a = args.common;
  const int mi = args.two_tiles_per_warp ? 2 : 1;
  args.layer_count = static_cast<int>(layers.size());
  const ReaderSmemLayout smem(args);
  size_t work = sizeof(float) * a.length * HeadPitch(a.last), accumulators = 0;
  work = std::max(work, PicardScratchBytes(a.picard.window, a.length * a.action_dim));
  for (const ReaderLayer& s : layers) {
    const size_t positions = s.layout.halo + size_t{1} * s.rows * s.layout.period;
    const size_t parts = kMmaWarps / (s.m_channels / (16 * mi));
    work = std::max(work, s.layout.pitch * positions);
    const size_t shortcut = s.shape.shortcut && !args.two_tiles_per_warp;
    accumulators = std::max(
        accumulators, sizeof(float) * (1 + shortcut) * parts * s.n_tiles * 8 * (s.m_channels + 4));
  }
  if (args.two_tiles_per_warp) {  // accumulators take the input's place
    args.accumulator_offset = 0;
    return smem.end + std::max(work, accumulators);
  }
  args.accumulator_offset = static_cast<int>((work + 15) / 16 * 16);
  return smem.end + args.accumulator_offset + accumulators;
}

void LaunchReaderMegakernel(Format format, const ReaderArgs& args, int ctas, size_t shared_bytes,
                            cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchTiles<Format::kFp16>(args, ctas, shared_bytes, stream);
  if (format == Format::kBf16) return LaunchTiles<Format::kBf16>(args, ctas, shared_bytes, stream);
  throw Unsupported("the megakernel has fp16 and bf16 kernels alone");
}

}  // namespace mjp::megakernel
