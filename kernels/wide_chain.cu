// A denoising chain of up to 32 rows in one persistent launch: bound by the latency between layers.
//
// wide_chain.cuh says how the blocks share a layer. While a warp multiplies, its weights of the
// next layer come to shared memory, over the borders of layers and passes; they go to registers
// before the layer's input has come. A layer is: collect finished activations, multiply by
// warpgroups, send the sums, finish the block's items of them. Bytes: weights once per team's rows
// and pass; activations and sums from L2, whose boxes are used in turn so that they stay there.

#include <algorithm>

#include "kernels/chain_loop.cuh"
#include "kernels/wide_stage.cuh"

namespace dp {
namespace {

// Offsets of what stands in shared memory behind the weights and before the input.
struct WidePlan {
  int stages, tiles, routes, x, first, head, timesteps, states, kept, moments, arrived, end;
  __host__ __device__ WidePlan(const WideChainArgs& w) {
    const ChainArgs& a = w.chain;
    const int elements = a.length * a.action_dim, rows = a.rows;
    stages = kChainWarps * kWideWarpBytes;
    tiles = stages + w.stage_count * static_cast<int>(sizeof(WideStage));
    routes = tiles + w.stage_count * static_cast<int>(sizeof(WideTile));
    x = routes + w.stage_count * static_cast<int>(sizeof(WideRoute));
    first = x + rows * (elements + 2 * kMaxFirstTerms) * 4;
    head = first + (a.first.taps + 1) * a.first.in_c * a.first.out_c * 4;
    timesteps = head + (a.last.channels + 1) * a.action_dim * 4;
    states = timesteps + rows * 4;
    kept = states + rows * static_cast<int>(sizeof(PicardState));
    moments = (kept + (a.picard.window > 0 ? 2 * rows * elements * 4 : 0) + 15) / 16 * 16;
    arrived = moments + kChainWarps * 8;
    end = (arrived + kChainWarps * 8 + 127) / 128 * 128;
  }
};

// grid: (kWideBlocks), all resident
template <Format F>
__global__ void __launch_bounds__(kChainThreads, 1)
    WideChainKernel(const __grid_constant__ WideChainArgs w) {
  extern __shared__ __align__(128) uint8_t shared[];
  if constexpr (!kHaveWgmma) return;
  const ChainArgs& a = w.chain;
  if (NothingLeft(a)) return;
  const WidePlan plan(w);
  auto* stages = reinterpret_cast<WideStage*>(shared + plan.stages);
  auto* tiles = reinterpret_cast<WideTile*>(shared + plan.tiles);
  ChainBlock b = {a,
                  reinterpret_cast<float*>(shared + plan.x),
                  reinterpret_cast<const float*>(shared + plan.first),
                  reinterpret_cast<const float*>(shared + plan.head),
                  reinterpret_cast<float2*>(shared + plan.moments),
                  0,
                  reinterpret_cast<int*>(shared + plan.timesteps),
                  WaitWatch(a.stuck)};
  const ChainWindows windows = {reinterpret_cast<PicardState*>(shared + plan.states),
                                reinterpret_cast<float*>(shared + plan.kept), shared + plan.end,
                                reinterpret_cast<int*>(shared + plan.moments)};
  const uint32_t before = *a.passes;
  LoadStages(stages, w.stages, w.stage_count);
  LoadEnds(b, reinterpret_cast<float*>(shared + plan.first),
           reinterpret_cast<float*>(shared + plan.head));
  const WideItem item = ItemOfBlock(blockIdx.x);
  auto* routes = reinterpret_cast<WideRoute*>(shared + plan.routes);
  for (int i = threadIdx.x; i < w.stage_count; i += kChainThreads) {
    tiles[i] = MakeWideTile(stages[i], item);
    routes[i] = MakeWideRoute<Storage<F>>(w, stages[i], item);
  }
  const WideThread thread = MakeWideThread(a, item, stages[0].items_log2);
  WideStream stream;
  const int warp = threadIdx.x / 32;
  stream.policy = EvictFirstPolicy();
  stream.tiles = tiles, stream.stage_count = w.stage_count;
  stream.buffer = SharedAddress(shared) + warp * kWideWarpBytes;
  stream.arrived = SharedAddress(shared + plan.arrived) + warp * 8;
  __syncthreads();
  stream.Begin();
  float4 rest = make_float4(0, 0, 0, 0);
  const int passes = RunPasses<true>(
      b, windows, [&](int pass) __attribute__((always_inline)) {
        const uint32_t number = before + pass;
        b.parity = number & 1;
        __syncthreads();
        for (int i = 0; i < w.stage_count; ++i)
          RunWideStage<F>(b, stages[i], routes[i], thread, stream, shared + plan.end, number - 1,
                          rest);
        __syncthreads();
      });
  // by now every block has read it: this one could not have finished without them
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.passes = before + passes;
  stream.Wait();  // what is under way would write to no one
}

}  // namespace

size_t WideSharedBytes(const std::vector<WideStage>& stages, const WideChainArgs& w) {
  constexpr size_t kBeyond = 1024;  // products of few positions read past the input
  const ChainArgs& a = w.chain;
  size_t work = PicardStageBytes(a.picard.window, a.length * a.action_dim);
  for (const WideStage& s : stages) {
    if (s.shape.in_c == 0) continue;
    const size_t input = size_t{kWideFilling} * 2 * s.places << s.rows_log2;
    const size_t positions = std::max(16, s.shape.out_length << s.rows_log2);
    const size_t sums = 2 * positions * kWideSumsPitch * sizeof(float);
    work = std::max({work, input + kBeyond, sums * (1 + s.shape.residual)});
  }
  return WidePlan(w).end + work;
}

void LaunchWideChain(Format format, const WideChainArgs& w, size_t shared_bytes,
                     cudaStream_t stream) {
  if (format == Format::kFp16)
    return LaunchPersistent<WideChainKernel<Format::kFp16>>(w, kWideBlocks, shared_bytes, stream);
  if (format == Format::kBf16)
    return LaunchPersistent<WideChainKernel<Format::kBf16>>(w, kWideBlocks, shared_bytes, stream);
  throw Unsupported("the denoising chain has fp16 and bf16 kernels alone");
}

}  // namespace dp
