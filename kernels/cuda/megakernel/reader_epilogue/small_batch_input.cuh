#ifndef KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_INPUT_CUH_
#define KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_INPUT_CUH_

#include "kernels/cuda/megakernel/reader_epilogue/layer.cuh"

// The input of a layer at one or two rows: polled, put through the epilogue of the layer before
// (every reader runs that of what it reads), and stored where the mma reads it. What does not
// change between passes is computed once.

namespace mjp::megakernel {

// What a CTA reads in a layer, computed once per launch: the source of its K slice, from its first
// row and channel on.
struct alignas(16) SmallBatchSource {
  const float *values, *residual;  // null: the convolution of x; no residual
  const float *bias, *shortcut_bias, *scale, *shift;
  float* materialized;                      // null: another CTA stores them
  int film_scale, film_bias;                // -1: none
  int channels, stride, row, residual_row;  // values between positions, K slices and rows
  int split_k, residual_split_k, first_channel;
  int row0, length_log2;
  int halo_bytes, pitch, period;  // bytes of the input: before, between positions, between rows
  int group_log2;                 // threads of an output tile; 0: materialised, copied
  int tile_channels_log2, vectors_log2;  // of a tile; vectors per position
  int row_tiles_log2, tiles;             // tiles of a row, of all; or vectors to copy
  bool shortcut_of_x;
};

// `channels` channels from `from` on of `rows` rows from row0 on, which go to an input of `layout`.
__device__ __forceinline__ SmallBatchSource MakeSource(const EpilogueSource& s, int from,
                                                       int channels, int row0, int rows, int length,
                                                       const InputLayout& layout,
                                                       bool materialize) {
  const auto at = [&](const float* p) { return p ? p + from : nullptr; };
  SmallBatchSource n = {};
  n.channels = s.channels, n.stride = length * s.channels;
  n.split_k = s.split_k, n.row = s.split_k * n.stride;
  n.residual_split_k = s.residual_split_k, n.residual_row = s.residual_split_k * n.stride;
  n.values = s.values ? s.values + static_cast<size_t>(row0) * n.row + from : nullptr;
  n.residual =
      s.residual ? s.residual + static_cast<size_t>(row0) * n.residual_row + from : nullptr;
  n.bias = at(s.bias), n.shortcut_bias = at(s.shortcut_bias);
  n.scale = at(s.norm_scale), n.shift = at(s.norm_shift);
  if (s.materialized && materialize)
    n.materialized = s.materialized + static_cast<size_t>(row0) * n.stride + from;
  n.film_scale = s.film_scale < 0 ? -1 : s.film_scale + from;
  n.film_bias = s.film_bias < 0 ? -1 : s.film_bias + from;
  n.first_channel = from, n.shortcut_of_x = s.shortcut_of_x;
  n.row0 = row0, n.length_log2 = Log2(length);
  n.pitch = layout.pitch, n.halo_bytes = layout.halo * n.pitch, n.period = layout.period * n.pitch;
  if (s.values && !s.bias && !s.norm_scale) {
    n.vectors_log2 = Log2(channels / 4);
    n.tiles = rows << (n.vectors_log2 + n.length_log2);
    return n;
  }
  n.tile_channels_log2 = Log2(s.group_channels), n.vectors_log2 = n.tile_channels_log2 - 2;
  n.row_tiles_log2 = Log2(channels) - n.tile_channels_log2;
  n.tiles = rows << n.row_tiles_log2;
  n.group_log2 = max(5, n.vectors_log2 + n.length_log2);  // PlanReaderLayer: a CTA holds the tile
  return n;
}

__device__ __forceinline__ SmallBatchSource MakeSmallBatchSource(const ReaderLayer& layer,
                                                                 const WarpTile& tile) {
  const int c0 = tile.k_slice * layer.k_slice;
  const bool second = c0 >= layer.source[0].channels;
  return MakeSource(layer.source[second], second ? c0 - layer.source[0].channels : c0,
                    layer.k_slice, tile.row0, layer.rows, layer.shape.in_length, layer.layout,
                    tile.m0 == 0);
}

// Of the head, for which a CTA has one output tile or none; `pitch` bytes between the positions of
// its input.
__device__ __forceinline__ SmallBatchSource MakeHeadSource(const EpilogueSource& s, int length,
                                                           int pitch) {
  const int tiles = s.channels / s.group_channels, cta = blockIdx.x;
  return MakeSource(s, cta % tiles * s.group_channels, s.group_channels, cta / tiles, 1, length,
                    {0, length, pitch}, false);
}

// A thread's part of an output tile: four channels at one position of a row.
struct TilePosition {
  int row, position, channel;
};

// Loads the partial sums there; a residual of several K slices, which arrived long ago, is summed
// at once.
struct SmallBatchLoads {
  const float *from, *from_residual;
  uint4 values[kMaxPartialSums], residual_value[1];
  float4 residual;

  __device__ __forceinline__ void IssueLoads(CtaState& cta, const SmallBatchSource& s,
                                             const TilePosition& p) {
    const int at = p.position * s.channels + p.channel;
    from = s.values + p.row * s.row + at;
    from_residual = s.residual + p.row * s.residual_row + at;
    residual = make_float4(0, 0, 0, 0);
    if (s.residual && s.residual_split_k > 1) {
      uint4 slices[kMaxPartialSums];
      IssueTagged4(slices, from_residual, s.stride, s.residual_split_k, cta.epoch);
      residual = ReceiveSum4(slices, from_residual, s.stride, cta.epoch, cta.watchdog);
    }
    IssueTagged4(residual_value, from_residual, s.stride, s.residual && s.residual_split_k == 1,
                 cta.epoch);
    IssueTagged4(values, from, s.stride, s.values ? s.split_k : 0, cta.epoch);
  }

  __device__ __forceinline__ float4 Receive(CtaState& cta, const SmallBatchSource& s,
                                            const TilePosition& p) {
    const FirstConvWeights& f = cta.a.first;
    const int row = s.row0 + p.row, channel = s.first_channel + p.channel;
    if (s.residual && s.residual_split_k == 1)
      residual = ReceiveSum4(residual_value, from_residual, s.stride, cta.epoch, cta.watchdog);
    if (s.shortcut_of_x)
      residual = ConvolveFirst(cta, cta.first + f.taps * f.in_c * f.out_c, 1, f.out_c, row,
                               p.position, channel);
    return s.values ? ReceiveSum4(values, from, s.stride, cta.epoch, cta.watchdog)
                    : ConvolveFirst(cta, cta.first, f.taps, f.out_c, row, p.position, channel);
  }
};

// The epilogue's terms of a thread's channels; not touched until the partial sums have arrived.
__device__ __forceinline__ ChannelTerms LoadSmallBatchTerms(const CtaState& cta,
                                                            const SmallBatchSource& s,
                                                            const TilePosition& p) {
  const float4 zero = make_float4(0, 0, 0, 0), one = make_float4(1, 1, 1, 1);
  ChannelTerms t = {zero, zero, zero, zero, {one, zero}, {zero, zero}};
  if (s.bias) t.bias = Load4(s.bias + p.channel);
  if (s.shortcut_bias) t.shortcut_bias = Load4(s.shortcut_bias + p.channel);
  if (s.scale) t.scale = Load4(s.scale + p.channel), t.shift = Load4(s.shift + p.channel);
  if (s.film_bias < 0) return t;
  const FilmTables& f = cta.a.film;
  const int row = s.row0 + p.row;
  const float* step = f.step_table + static_cast<size_t>(cta.timesteps[row]) * f.width + p.channel;
  const float* cond = f.cond + row * f.width + p.channel;
  t.film_shift[0] = Load4(step + s.film_bias), t.film_shift[1] = Load4(cond + s.film_bias);
  if (s.film_scale >= 0)
    t.film_scale[0] = Load4(step + s.film_scale), t.film_scale[1] = Load4(cond + s.film_scale);
  return t;
}

template <typename T>
__device__ __forceinline__ void PutInput(const SmallBatchSource& s, uint8_t* input,
                                         const TilePosition& p, const Pack<T, 4>& pack) {
  *reinterpret_cast<Pack<T, 4>*>(input + s.halo_bytes + p.row * s.period + p.position * s.pitch +
                                 p.channel * 2) = pack;
}

// Runs the epilogue of one output tile, four channels at one position in each thread. `meanwhile`
// runs while the loads are under way.
template <typename T, typename Meanwhile>
__device__ __forceinline__ void SmallBatchEpilogue(CtaState& cta, const SmallBatchSource& s,
                                                   const ReductionGroup& group, int tile,
                                                   uint8_t* input, const Meanwhile& meanwhile) {
  const int all = 1 << (s.vectors_log2 + s.length_log2);
  const int at = min(group.thread, all - 1);  // threads without a part load the last one's
  const TilePosition p = {tile >> s.row_tiles_log2, at >> s.vectors_log2,
                          ((tile & ((1 << s.row_tiles_log2) - 1)) << s.tile_channels_log2) +
                              (at & ((1 << s.vectors_log2) - 1)) * 4};
  SmallBatchLoads loads;
  loads.IssueLoads(cta, s, p);
  const ChannelTerms t = LoadSmallBatchTerms(cta, s, p);
  meanwhile();
  float4 x[1] = {loads.Receive(cta, s, p)};
  Add4(x[0], t.bias);
  Add4(loads.residual, t.shortcut_bias);
  if (s.scale) x[0] = Modulate(t, GroupMoments(group, x, 1, all)).Apply(x[0]);
  if (group.thread >= all) return;
  Add4(x[0], loads.residual);
  const Pack<T, 4> pack = PackFour<T>(x[0]);
  PutInput(s, input, p, pack);
  if (s.materialized)
    StoreMaterialized(s.materialized + p.row * s.stride + p.position * s.channels + p.channel, pack,
                      cta.epoch);
}

// Copies materialised activations.
template <typename T, typename Meanwhile>
__device__ __forceinline__ void CopySmallBatch(CtaState& cta, const SmallBatchSource& s,
                                               uint8_t* input, const Meanwhile& meanwhile) {
  for (int i = threadIdx.x; i < s.tiles; i += kMmaThreads) {
    const int at = i >> s.vectors_log2;
    const TilePosition p = {at >> s.length_log2, at & ((1 << s.length_log2) - 1),
                            (i & ((1 << s.vectors_log2) - 1)) * 4};
    const float* from = s.values + p.row * s.row + p.position * s.channels + p.channel;
    uint4 w[1] = {LoadTagged4(from)};
    meanwhile();
    const float4 v = ReceiveSum4(w, from, 0, cta.epoch, cta.watchdog);
    PutInput(s, input, p, PackFour<T>(v));
  }
}

// Fills the input. `meanwhile` runs, in some of the threads and perhaps more than once, while loads
// are under way.
template <typename T, typename Meanwhile>
__device__ __forceinline__ void FillSmallBatchInput(CtaState& cta, const SmallBatchSource& s,
                                                    uint8_t* input, const Meanwhile& meanwhile) {
  if (s.group_log2 == 0) return CopySmallBatch<T>(cta, s, input, meanwhile);
  ReductionGroup group;
  group.index = static_cast<int>(threadIdx.x) >> s.group_log2;
  group.count = kMmaThreads >> s.group_log2;
  group.warps = 1 << (s.group_log2 - 5);
  group.thread = static_cast<int>(threadIdx.x) & ((1 << s.group_log2) - 1);
  group.moments = cta.moments + group.index * group.warps;
  for (int i = group.index; i < s.tiles; i += group.count) {
    SmallBatchEpilogue<T>(cta, s, group, i, input, meanwhile);
    if (group.warps > 1 && i + group.count < s.tiles)
      group.Barrier();  // the moments are free again
  }
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_INPUT_CUH_
