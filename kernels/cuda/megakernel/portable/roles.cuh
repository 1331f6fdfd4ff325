#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_ROLES_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_ROLES_CUH_

#include "kernels/cuda/megakernel/epilogue_warps.cuh"
#include "kernels/cuda/megakernel/portable/tile.cuh"
#include "kernels/cuda/megakernel/sampler_step.cuh"

// A CTA of the portable kernel: its shared memory, set-up, and the loop over a pass' layers.

namespace mjp::megakernel {

// Offsets in shared memory: PortableCta is at 0, the weight tiles are behind it, the input is at
// `end`. Of the first convolution and the head each norm group of the CTA's tiles has a place of
// its own.
struct PortableLayout {
  int outputs, descriptors, layers, x, first, first_bytes, head, head_group_bytes, head_bias,
      timesteps, states, previous, moments, end;
  __host__ __device__ PortableLayout(const Args& args, const PortablePlan& plan) {
    const CommonArgs& a = args.common;
    const int elements = a.length * a.action_dim, rows = a.rows, count = args.layer_count;
    const int per_cta = plan.TilesPerCta(), groups = per_cta > 2 ? 2 : 1;
    first_bytes = (a.first.taps + 1) * a.first.in_c * (a.first.out_c / kNormGroups) * 4;
    head_group_bytes = a.last_channels / kNormGroups * a.action_dim * 4;
    outputs = static_cast<int>(sizeof(PortableCta) + (count * per_cta + 1) * sizeof(WeightTile));
    descriptors = outputs + per_cta * static_cast<int>(sizeof(OwnOutput));
    const int tables = plan.table_in_shared ? count : 0;
    layers = descriptors + tables * per_cta * static_cast<int>(sizeof(PortableDescriptor));
    x = layers + tables * static_cast<int>(sizeof(Layer));
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

// Where things are in shared memory: read anew, and not held in registers through the whole pass.
__device__ __forceinline__ void PlaceCtaState(const PortableCta& own, CtaState& cta) {
  cta.x = own.x, cta.head_bias = own.head_bias, cta.timesteps = own.timesteps;
}

// The epilogues of a layer's output tiles; where tiles are small, each half of the threads takes
// every other one. use: of the moments' buffers. received() runs once, when the first partial
// sums have arrived.
template <Format F, bool kTablesInShared, typename Received>
__device__ __forceinline__ void RunPortableEpilogues(CtaState& cta, const PortableArgs& args,
                                                     int index, int& use, uint32_t pass,
                                                     const Received& received) {
  constexpr int kHalf = kMmaThreads / 2;
  const PortableCta& own = OwnCta();
  PlaceCtaState(own, cta);
  const Layer& layer = OwnLayers<kTablesInShared>(args)[index];
  const bool stores_residual = layer.adds_residual || layer.shape.in_c == 0 || layer.shape.shortcut;
  const bool pairs = args.plan.pairs;
  const int half = pairs ? threadIdx.x / kHalf : 0;
#pragma unroll 1
  for (int i = 0; i < own.output_count; i += pairs ? 2 : 1) {
    const bool mine = i + half < own.output_count;
    const OwnOutput& output = own.outputs[mine ? i + half : i];
    const LayerDescriptor& desc =
        OwnDescriptors<kTablesInShared>(args)[output.tile * args.args.layer_count + index];
    use ^= kMmaWarps;
    cta.moments = own.moments + (2 * half * kMmaWarps + use);
    const int slot = own.GroupSlot(output.group);
    cta.first_weights = reinterpret_cast<const float*>(own.first_weights + slot * own.first_bytes);
    cta.head_weights = reinterpret_cast<const float*>(own.head_weights + slot * own.head_bytes);
    const int thread_index = pairs ? threadIdx.x % kHalf : threadIdx.x;
    // a half without a tile is like threads without values
    EpilogueThread thread = {mine ? thread_index : kMmaThreads,
                             0,
                             output.row,
                             output.group,
                             output.source_row,
                             0,
                             output.cond_offset,
                             kTileMoments + (kSecondTileMoments - kTileMoments) * half};
    SetTimestep(cta, thread);
    float4* stored = args.residuals + (own.first + output.tile) * kMmaThreads + thread_index;
    float4 residual = make_float4(0, 0, 0, 0);
    if (layer.adds_residual) residual = *stored;
    ChannelTerms terms;
    RunEpilogue<Storage<F>, kVirtualCtas>(cta, layer, desc, thread, pass, residual, terms, nullptr,
                                          [&] {
                                            if (i == 0) received();
                                          });
    if (stores_residual && mine) *stored = residual;
  }
  if (own.output_count == 0) received();
}

// Waits until all output tiles of a layer with a fence have been published; by a CTA that has none,
// for which its own next output would tell that (I5).
__device__ __forceinline__ void AwaitFences(CtaState& cta, const Layer& layer, int row_slots_log2) {
  const int tile = threadIdx.x;
  if (tile >= kNormGroups << row_slots_log2) return;
  LayerDescriptor d;
  d.length_log2 = layer.out_length_log2 + layer.shape.phases - 1;
  DescribeOutput(layer, {tile & ((1 << row_slots_log2) - 1), tile >> row_slots_log2}, d);
  const uint8_t* at = d.output + cta.epoch * d.output_buffer;
  for (int tries = 0; !HasArrived(Load16(at)) && !cta.watchdog.TimedOut(tries); ++tries) {
  }
}

// All layers of a pass. The first tile of a layer is found before the epilogues of the layer
// before. The second half of its weights is loaded once those have partial sums: with weights under
// way polls would wait for them, since few scoreboards are shared by all loads.
template <Format F, bool kTablesInShared>
__device__ __forceinline__ void RunPortableLayers(CtaState& cta, const PortableArgs& args,
                                                  WeightRegisters& weights, uint32_t pass) {
  const PortableCta& own = OwnCta();
  using Tiles = PortableTiles<kTablesInShared>;
  const Layer* layers = OwnLayers<kTablesInShared>(args);
  const int count = args.args.layer_count;
  int use = 0, tile = own.count;  // layer 0 has none
  ActivationLoader loader =
      Tiles{cta, args, weights, 0}.Loader(OwnDescriptors<kTablesInShared>(args)[0], 0);
#pragma unroll 1
  for (int index = 0; index < count; ++index) {
    const bool multiplies = tile < own.count;
    if (multiplies) RunPortableTiles<F>(Tiles{cta, args, weights, index}, pass, tile, loader);
    const Tiles next = {cta, args, weights, min(index + 1, count - 1)};
    tile = next.WithWork(0);
    const PortableDescriptor& desc = next.At(min(tile, own.count - 1));
    loader = next.Loader(desc, desc.channel0);
    RunPortableEpilogues<F, kTablesInShared>(cta, args, index, use, pass, [&] {
      if (multiplies) weights.LoadSecond();
    });
    if (index == 0 || !layers[index - 1].fence) continue;
    // Joins the threads without values with those that received partial sums: the whole CTA is now
    // behind every CTA's fence (I5).
    if (own.output_count == 0) AwaitFences(cta, layers[index - 1], args.plan.row_slots_log2);
    WaitAtBarrier<kMmaBarrier>();
  }
}

// Makes the tables of what the CTA takes: weights and descriptors of each layer, output tiles.
template <Format F, bool kTablesInShared>
__device__ __forceinline__ void MakeTables(const PortableCta& own, const PortableArgs& args) {
  const CommonArgs& a = args.args.common;
  const int count = args.args.layer_count;
  WeightTile* tiles = OwnWeightTiles();
  for (int at = threadIdx.x; at < count * own.count; at += kMmaThreads) {
    const int index = at / own.count, i = at % own.count, at_virtual = own.first + i;
    const bool first = at_virtual % 2 == 0 && i + 1 < own.count, second = at_virtual % 2 && i > 0;
    const PortableDescriptor d =
        DescribeVirtual<Storage<F>>(args, args.args.layers[index], at_virtual, first, second);
    OwnDescriptors<kTablesInShared>(args)[i * count + index] = d;
    tiles[at] = MakeWeightTile(args.args.layers[index], own.Tile(i));
    if (!d.has_work) tiles[at].k_blocks = 0;
  }
  if (threadIdx.x == 0) tiles[count * own.count].k_blocks = kEndOfTiles;
  for (int i = threadIdx.x; i < own.count; i += kMmaThreads) {
    int at = 0;
    for (int before = 0; before < i; ++before) at += own.IsUsed(before, args.plan);
    if (!own.IsUsed(i, args.plan)) continue;
    const OutputTile tile = own.Tile(i);
    const int row = min(tile.row_slot, a.rows - 1);
    own.outputs[at] = {i, tile.row_slot, tile.group, row,
                       static_cast<uint32_t>(row / a.film.rows_per_env * a.film.width)};
  }
}

__device__ __forceinline__ PortableCta MakePortableCta(const PortableArgs& args,
                                                       const PortableLayout& smem) {
  const int ctas = args.plan.ctas;
  PortableCta own;
  own.first = VirtualBegin(blockIdx.x, ctas);
  own.count = VirtualBegin(blockIdx.x + 1, ctas) - own.first;
  own.output_count = 0;
  for (int i = 0; i < own.count; ++i) own.output_count += own.IsUsed(i, args.plan);
  own.descriptors.at = smem.descriptors, own.layers.at = smem.layers;
  own.outputs.at = smem.outputs, own.moments.at = smem.moments;
  own.x.at = smem.x, own.head_bias.at = smem.head_bias, own.timesteps.at = smem.timesteps;
  own.first_weights.at = smem.first, own.head_weights.at = smem.head;
  own.first_bytes = smem.first_bytes, own.head_bytes = smem.head_group_bytes;
  own.input.at = smem.end, own.accumulators.at = smem.end + args.plan.accumulator_offset;
  uint8_t* shared = SharedBegin();
  own.windows = {reinterpret_cast<PicardState*>(shared + smem.states),
                 reinterpret_cast<float*>(shared + smem.previous), own.input,
                 reinterpret_cast<int*>(shared + smem.moments)};
  return own;
}

// Puts into shared memory what all passes need, and makes the tables.
template <Format F, bool kTablesInShared>
__device__ __forceinline__ void LoadPortableCta(const CtaState& cta, const PortableArgs& args,
                                                const PortableLayout& smem) {
  PortableCta& own = OwnCta();
  uint8_t* shared = SharedBegin();
  if (threadIdx.x == 0) own = MakePortableCta(args, smem);
  if (kTablesInShared)
    LoadLayers(reinterpret_cast<Layer*>(shared + smem.layers), args.args.layers,
               args.args.layer_count);
  SyncPicardThreads();
  for (int group = own.Tile(0).group; group <= own.Tile(own.count - 1).group; ++group) {
    const int slot = own.GroupSlot(group);
    LoadInOutWeights(cta, reinterpret_cast<float*>(shared + smem.first + slot * own.first_bytes),
                     reinterpret_cast<float*>(shared + smem.head + slot * own.head_bytes),
                     reinterpret_cast<float*>(shared + smem.head_bias), group, kNormGroups);
  }
  MakeTables<F, kTablesInShared>(own, args);
  SyncPicardThreads();
}

// Whose sampler steps a CTA takes: of its rows that are used, each once; where it stands for more
// than a pair, of all.
__device__ __forceinline__ SamplerThreads SamplerOf(const PortableCta& own, const CommonArgs& a) {
  const bool pair = own.count == 1 || (own.count == 2 && own.first % 2 == 0);
  bool has_first_group = false;
  for (int i = 0; i < own.output_count; ++i) has_first_group |= own.outputs[i].group == 0;
  const int thread = static_cast<int>(threadIdx.x);
  if (!pair && own.output_count > 0) return {thread, kMmaThreads, 0, 1, a.rows, has_first_group};
  const int row_slot = own.Tile(0).row_slot;
  return {thread,
          kMmaThreads,
          row_slot,
          kPairRows,
          SampledRows(row_slot, own.output_count, a.rows),
          has_first_group};
}

// All passes of a launch.
template <Format F, bool kTablesInShared>
__device__ __forceinline__ void RunPortable(CtaState& cta, const PortableArgs& args,
                                            const PortableLayout& smem) {
  const uint32_t before = *args.args.common.pass_count;
  LoadPortableCta<F, kTablesInShared>(cta, args, smem);
  const PortableCta& own = OwnCta();
  WeightRegisters weights;
  weights.Begin();
  SamplerThreads sampler;
  const int passes = RunPasses<true>(
      cta, own.windows, sampler, [&](int pass) __attribute__((always_inline)) {
        cta.epoch = (before + pass) & 1;
        SyncPicardThreads();
        RunPortableLayers<F, kTablesInShared>(cta, args, weights, before + pass - 1);
        PlaceCtaState(own, cta);
        sampler = SamplerOf(own, cta.a);
        SyncPicardThreads();
      });
  // all CTAs have read it: this one could not have finished without them
  if (blockIdx.x == 0 && threadIdx.x == 0) *cta.a.pass_count = before + passes;
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_ROLES_CUH_
