#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_ROLES_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_ROLES_CUH_

#include "kernels/cuda/megakernel/epilogue_warps.cuh"
#include "kernels/cuda/megakernel/portable/tile.cuh"
#include "kernels/cuda/megakernel/sampler_step.cuh"

// A CTA of the portable kernel: its shared memory, set-up, and the loop over a pass' layers.

namespace mjp::megakernel {

// Offsets in shared memory: the weight rings are at 0, the input at `end`. Of the first convolution
// and the head each norm group of the CTA's tiles has a place of its own.
struct PortableLayout {
  int tiles, layers, descriptors, x, first, first_bytes, head, head_group_bytes, head_bias,
      timesteps, states, previous, moments, end;
  __host__ __device__ PortableLayout(const Args& args, const PortablePlan& plan) {
    const CommonArgs& a = args.common;
    const int elements = a.length * a.action_dim, rows = a.rows, count = args.layer_count;
    const int per_cta = plan.TilesPerCta(), groups = per_cta < kNormGroups ? per_cta : kNormGroups;
    first_bytes = (a.first.taps + 1) * a.first.in_c * (a.first.out_c / kNormGroups) * 4;
    head_group_bytes = a.last_channels / kNormGroups * a.action_dim * 4;
    tiles = kMmaWarps * plan.stages * kStageBytes;
    layers = tiles + count * per_cta * static_cast<int>(sizeof(WeightTile));
    descriptors = layers + (plan.table_in_shared ? count * static_cast<int>(sizeof(Layer)) : 0);
    x = descriptors +
        (plan.table_in_shared ? count * per_cta * static_cast<int>(sizeof(LayerDescriptor)) : 0);
    first = x + XBytes(a);
    head = first + groups * first_bytes;
    head_bias = head + groups * head_group_bytes;
    timesteps = head_bias + a.action_dim * 4;
    states = timesteps + rows * 4;
    previous = states + rows * static_cast<int>(sizeof(PicardState));
    moments = (previous + (a.picard.window > 0 ? 2 * rows * elements * 4 : 0) + 15) / 16 * 16;
    end = (moments + 4 * kMmaWarps * static_cast<int>(sizeof(float2)) + 127) / 128 * 128;
  }
};

// What a CTA stands for, and where its tables are.
struct PortableCta {
  int first, count;  // virtual CTAs
  const Layer* layers;
  const LayerDescriptor* descriptors;  // (virtual CTAs, layers)
  const uint8_t *first_weights, *head_weights;
  int first_bytes, head_bytes;
  float2* moments;  // two buffers in turn, of either half of the threads
  uint8_t *input, *accumulators;

  __device__ __forceinline__ OutputTile Tile(int i) const { return TileOfVirtual(first + i); }
  // Where the first convolution's and the head's weights of a norm group stand.
  __device__ __forceinline__ int GroupSlot(int group) const {
    return (group - first % kNormGroups) & (kNormGroups - 1);
  }
};

// The virtual CTAs' epilogues of one layer; where tiles are small, each half of the threads takes
// every other one. use: of the moments' buffers.
template <Format F>
__device__ __forceinline__ void RunPortableEpilogues(CtaState& cta, const PortableCta& own,
                                                     const PortableArgs& args, int index, int& use,
                                                     uint32_t pass) {
  constexpr int kHalf = kMmaThreads / 2;
  const Layer& layer = own.layers[index];
  const bool stores_residual = layer.adds_residual || layer.shape.in_c == 0 || layer.shape.shortcut;
  const bool pairs = args.plan.pairs;
  const int half = pairs ? threadIdx.x / kHalf : 0;
  EpilogueThread thread;
#pragma unroll 1
  for (int i = 0; i < own.count; i += pairs ? 2 : 1) {
    const bool mine = i + half < own.count;
    const int tile_index = mine ? i + half : i;
    const LayerDescriptor& desc = own.descriptors[tile_index * args.args.layer_count + index];
    const OutputTile tile = own.Tile(tile_index);
    use ^= kMmaWarps;
    cta.moments = own.moments + (2 * half * kMmaWarps + use);
    cta.first_weights = reinterpret_cast<const float*>(own.first_weights +
                                                       own.GroupSlot(tile.group) * own.first_bytes);
    cta.head_weights = reinterpret_cast<const float*>(own.head_weights +
                                                      own.GroupSlot(tile.group) * own.head_bytes);
    // a half without a tile is like threads without values
    const int thread_index = pairs ? threadIdx.x % kHalf : threadIdx.x;
    thread = MakeEpilogueThread(cta, tile, 0, mine ? thread_index : kMmaThreads);
    thread.barrier = kTileMoments + (kSecondTileMoments - kTileMoments) * half;
    SetTimestep(cta, thread);
    float4* stored = args.residuals + (own.first + tile_index) * kMmaThreads + thread_index;
    float4 residual = make_float4(0, 0, 0, 0);
    if (layer.adds_residual) residual = *stored;
    ChannelTerms terms;
    RunEpilogue<Storage<F>, kVirtualCtas>(cta, layer, desc, thread, pass, residual, terms, nullptr);
    if (stores_residual && mine) *stored = residual;
  }
}

// All layers of a pass.
template <Format F>
__device__ __forceinline__ void RunPortableLayers(CtaState& cta, const PortableCta& own,
                                                  const PortableArgs& args, WeightRing& ring,
                                                  uint32_t pass) {
  const int count = args.args.layer_count;
  int use = 0;
#pragma unroll 1
  for (int index = 0; index < count; ++index) {
    const Layer& layer = own.layers[index];
    if (layer.shape.in_c > 0)
      RunPortableTiles<F>({cta, layer, own.descriptors + index, count, own.count, ring, own.input,
                           own.accumulators},
                          pass);
    RunPortableEpilogues<F>(cta, own, args, index, use, pass);
    // Joins the threads without values with those that received partial sums: the whole CTA is now
    // behind every CTA's fence (I5).
    if (index > 0 && own.layers[index - 1].fence) WaitAtBarrier<kMmaBarrier>();
  }
}

// Copies into shared memory what all passes need, and makes the tables.
template <Format F>
__device__ __forceinline__ PortableCta LoadPortableCta(const CtaState& cta,
                                                       const PortableArgs& args,
                                                       const PortableLayout& smem,
                                                       uint8_t* shared) {
  const int count = args.args.layer_count, ctas = args.plan.ctas;
  PortableCta own;
  own.first = VirtualBegin(blockIdx.x, ctas);
  own.count = VirtualBegin(blockIdx.x + 1, ctas) - own.first;
  own.layers = args.args.layers;
  auto* descriptors =
      reinterpret_cast<LayerDescriptor*>(args.table) + static_cast<size_t>(own.first) * count;
  if (args.plan.table_in_shared) {
    auto* layers = reinterpret_cast<Layer*>(shared + smem.layers);
    LoadLayers(layers, args.args.layers, count);
    own.layers = layers;
    descriptors = reinterpret_cast<LayerDescriptor*>(shared + smem.descriptors);
  }
  own.descriptors = descriptors;
  own.first_weights = shared + smem.first, own.head_weights = shared + smem.head;
  own.first_bytes = smem.first_bytes, own.head_bytes = smem.head_group_bytes;
  own.moments = reinterpret_cast<float2*>(shared + smem.moments);
  own.input = shared + smem.end, own.accumulators = own.input + args.plan.accumulator_offset;
  for (int i = 0; i < min(own.count, kNormGroups); ++i) {
    const int group = own.Tile(i).group, slot = own.GroupSlot(group);
    LoadInOutWeights(cta, reinterpret_cast<float*>(shared + smem.first + slot * own.first_bytes),
                     reinterpret_cast<float*>(shared + smem.head + slot * own.head_bytes),
                     reinterpret_cast<float*>(shared + smem.head_bias), group, kNormGroups);
  }
  auto* tiles = reinterpret_cast<WeightTile*>(shared + smem.tiles);
  for (int at = threadIdx.x; at < count * own.count; at += kMmaThreads) {
    const int index = at / own.count, i = at % own.count;
    const OutputTile tile = own.Tile(i);
    tiles[at] = MakeWeightTile(own.layers[index], tile);
    descriptors[i * count + index] =
        MakeLayerDescriptor<Storage<F>>(args.args, own.layers[index], tile, CtaOfTile(tile));
  }
  SyncPicardThreads();
  return own;
}

// All passes of a launch.
template <Format F>
__device__ __forceinline__ void RunPortable(CtaState& cta, const PortableArgs& args,
                                            const PortableLayout& smem, uint8_t* shared) {
  const uint32_t before = *args.args.common.pass_count;
  const PortableCta own = LoadPortableCta<F>(cta, args, smem, shared);
  const PicardWindows windows = {reinterpret_cast<PicardState*>(shared + smem.states),
                                 reinterpret_cast<float*>(shared + smem.previous), own.input,
                                 reinterpret_cast<int*>(shared + smem.moments)};
  WeightRing ring;
  ring.Begin(reinterpret_cast<const WeightTile*>(shared + smem.tiles),
             args.args.layer_count * own.count,
             SharedAddress(shared) + threadIdx.x / 32 * args.plan.stages * kStageBytes,
             args.plan.stages, threadIdx.x);
  // the rows of the own tiles, each once; a row beyond the last one computes what that one does
  const int row = own.first / kNormGroups,
            last = min((own.first + own.count - 1) / kNormGroups, cta.a.rows - 1);
  const bool has_first_group = own.first % kNormGroups == 0 || own.GroupSlot(0) < own.count;
  const SamplerThreads sampler = {static_cast<int>(threadIdx.x), kMmaThreads,    row, 1,
                                  max(last - row + 1, 1),        has_first_group};
  const int passes = RunPasses<true>(
      cta, windows, sampler, [&](int pass) __attribute__((always_inline)) {
        cta.epoch = (before + pass) & 1;
        SyncPicardThreads();
        RunPortableLayers<F>(cta, own, args, ring, before + pass - 1);
        SyncPicardThreads();
      });
  // all CTAs have read it: this one could not have finished without them
  if (blockIdx.x == 0 && threadIdx.x == 0) *cta.a.pass_count = before + passes;
  ring.Drain();
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_ROLES_CUH_
