#ifndef KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_INPUT_CUH_
#define KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_INPUT_CUH_

#include "kernels/cuda/megakernel/reader_epilogue/layer.cuh"

// The input of a stage of the persistent chain at one or two rows: asked for, waited for, finished
// and put where the products read it. What does not change between passes is worked out once.

namespace mjp {

// What a block reads in a stage, worked out once per launch: the source of its share of the input
// channels, from its first row and channel on.
struct alignas(16) NarrowSource {
  const float *words, *residual;  // null: the convolution of x; no residual
  const float *bias, *residual_bias, *scale, *shift;
  float* keep;                              // null: another block does
  int film_scale, film_bias;                // -1: none
  int channels, stride, row, residual_row;  // words between positions, shares and rows
  int splits, residual_splits, first_channel;
  int row0, length_log2;
  int place, pitch, period;  // bytes of the input: before, between positions, between rows
  int team_log2;             // threads of an item; 0: copied
  int item_log2, wide_log2, row_items_log2;  // an item's channels and vectors per position
  int items;                                 // or vectors to copy
  bool first_residual;
};

// `share` channels from `from` on of `rows` rows from row0 on, which go to an input of `layout`.
__device__ __forceinline__ NarrowSource MakeSource(const ChainSource& s, int from, int share,
                                                   int row0, int rows, int length,
                                                   const FusedLayout& layout, bool keep) {
  const auto at = [&](const float* p) { return p ? p + from : nullptr; };
  NarrowSource n = {};
  n.channels = s.channels, n.stride = length * s.channels;
  n.splits = s.splits, n.row = s.splits * n.stride;
  n.residual_splits = s.residual_splits, n.residual_row = s.residual_splits * n.stride;
  n.words = s.words ? s.words + static_cast<size_t>(row0) * n.row + from : nullptr;
  n.residual =
      s.residual ? s.residual + static_cast<size_t>(row0) * n.residual_row + from : nullptr;
  n.bias = at(s.bias), n.residual_bias = at(s.residual_bias);
  n.scale = at(s.norm_scale), n.shift = at(s.norm_shift);
  if (s.keep && keep) n.keep = s.keep + static_cast<size_t>(row0) * n.stride + from;
  n.film_scale = s.film_scale < 0 ? -1 : s.film_scale + from;
  n.film_bias = s.film_bias < 0 ? -1 : s.film_bias + from;
  n.first_channel = from, n.first_residual = s.first_residual;
  n.row0 = row0, n.length_log2 = Log2(length);
  n.pitch = layout.pitch, n.place = layout.left * n.pitch, n.period = layout.period * n.pitch;
  if (s.words && !s.bias && !s.norm_scale) {
    n.wide_log2 = Log2(share / 4);
    n.items = rows << (n.wide_log2 + n.length_log2);
    return n;
  }
  n.item_log2 = Log2(s.item_channels), n.wide_log2 = n.item_log2 - 2;
  n.row_items_log2 = Log2(share) - n.item_log2;
  n.items = rows << n.row_items_log2;
  n.team_log2 = max(5, n.wide_log2 + n.length_log2);  // PlanChainStage: a block holds the item
  return n;
}

__device__ __forceinline__ NarrowSource MakeStageSource(const ChainStage& st,
                                                        const WarpTile& tile) {
  const int c0 = tile.split * st.share;
  const bool second = c0 >= st.source[0].channels;
  return MakeSource(st.source[second], second ? c0 - st.source[0].channels : c0, st.share,
                    tile.row0, st.rows, st.shape.in_length, st.layout, tile.m0 == 0);
}

// Of the head, which multiplies one (row, group) in a block or none; `pitch` bytes between the
// positions of its input.
__device__ __forceinline__ NarrowSource MakeHeadSource(const ChainArgs& a, int pitch) {
  const ChainSource& s = a.last;
  const int items = s.channels / s.item_channels, block = blockIdx.x;
  return MakeSource(s, block % items * s.item_channels, s.item_channels, block / items, 1, a.length,
                    {0, a.length, pitch}, false);
}

// A thread's part of an item: four channels of the source's share at some positions of a row.
struct NarrowPlace {
  int row, position, channel;
};

// Asks for the numbers there; a residual of several shares, which has long been there, is summed at
// once.
struct NarrowNumbers {
  const float *from, *from_residual;
  uint4 words[kChainMaxSplits], residual_word[1];
  float4 residual;

  __device__ __forceinline__ void Ask(ChainBlock& b, const NarrowSource& s, const NarrowPlace& p) {
    const int at = p.position * s.channels + p.channel;
    from = s.words + p.row * s.row + at;
    from_residual = s.residual + p.row * s.residual_row + at;
    residual = make_float4(0, 0, 0, 0);
    if (s.residual && s.residual_splits > 1) {
      uint4 shares[kChainMaxSplits];
      AskWords4(shares, from_residual, s.stride, s.residual_splits, b.parity);
      residual = SumWords4(shares, from_residual, s.stride, b.parity, b.watch);
    }
    AskWords4(residual_word, from_residual, s.stride, s.residual && s.residual_splits == 1,
              b.parity);
    AskWords4(words, from, s.stride, s.words ? s.splits : 0, b.parity);
  }

  __device__ __forceinline__ float4 Take(ChainBlock& b, const NarrowSource& s,
                                         const NarrowPlace& p) {
    const FirstConvArgs& f = b.a.first;
    const int row = s.row0 + p.row, channel = s.first_channel + p.channel;
    if (s.residual && s.residual_splits == 1)
      residual = SumWords4(residual_word, from_residual, s.stride, b.parity, b.watch);
    if (s.first_residual)
      residual = ConvolveFirst(b, b.first + f.taps * f.in_c * f.out_c, 1, f.out_c, row, p.position,
                               channel);
    return s.words ? SumWords4(words, from, s.stride, b.parity, b.watch)
                   : ConvolveFirst(b, b.first, f.taps, f.out_c, row, p.position, channel);
  }
};

// What a thread needs of its channels beside the numbers; not touched until those are there.
__device__ __forceinline__ ChannelTerms NarrowTerms(const ChainBlock& b, const NarrowSource& s,
                                                    const NarrowPlace& p) {
  const float4 zero = make_float4(0, 0, 0, 0), one = make_float4(1, 1, 1, 1);
  ChannelTerms t = {zero, zero, zero, zero, {one, zero}, {zero, zero}};
  if (s.bias) t.bias = Load4(s.bias + p.channel);
  if (s.residual_bias) t.residual_bias = Load4(s.residual_bias + p.channel);
  if (s.scale) t.scale = Load4(s.scale + p.channel), t.shift = Load4(s.shift + p.channel);
  if (s.film_bias < 0) return t;
  const FilmArgs& f = b.a.film;
  const int row = s.row0 + p.row;
  const float* step = f.step_table + static_cast<size_t>(b.timesteps[row]) * f.width + p.channel;
  const float* cond = f.cond + row * f.width + p.channel;
  t.film_shift[0] = Load4(step + s.film_bias), t.film_shift[1] = Load4(cond + s.film_bias);
  if (s.film_scale >= 0)
    t.film_scale[0] = Load4(step + s.film_scale), t.film_scale[1] = Load4(cond + s.film_scale);
  return t;
}

template <typename T>
__device__ __forceinline__ void PutInput(const NarrowSource& s, uint8_t* input,
                                         const NarrowPlace& p, const Pack<T, 4>& pack) {
  *reinterpret_cast<Pack<T, 4>*>(input + s.place + p.row * s.period + p.position * s.pitch +
                                 p.channel * 2) = pack;
}

// Finishes one item, four channels at one position in each thread. `meanwhile` runs between asking
// and waiting.
template <typename T, typename Meanwhile>
__device__ __forceinline__ void FinishNarrow(ChainBlock& b, const NarrowSource& s,
                                             const ChainTeam& team, int item, uint8_t* input,
                                             const Meanwhile& meanwhile) {
  const int all = 1 << (s.wide_log2 + s.length_log2);
  const int at = min(team.thread, all - 1);  // threads without a part ask for the last one's
  const NarrowPlace p = {item >> s.row_items_log2, at >> s.wide_log2,
                         ((item & ((1 << s.row_items_log2) - 1)) << s.item_log2) +
                             (at & ((1 << s.wide_log2) - 1)) * 4};
  NarrowNumbers numbers;
  numbers.Ask(b, s, p);
  const ChannelTerms t = NarrowTerms(b, s, p);
  meanwhile();
  float4 x[1] = {numbers.Take(b, s, p)};
  Add4(x[0], t.bias);
  Add4(numbers.residual, t.residual_bias);
  if (s.scale) x[0] = Modulate(t, TeamMoments(team, x, 1, all)).Apply(x[0]);
  if (team.thread >= all) return;
  Add4(x[0], numbers.residual);
  const Pack<T, 4> pack = PackFour<T>(x[0]);
  PutInput(s, input, p, pack);
  if (s.keep)
    StoreKept(s.keep + p.row * s.stride + p.position * s.channels + p.channel, pack, b.parity);
}

// Copies finished numbers.
template <typename T, typename Meanwhile>
__device__ __forceinline__ void CopyNarrow(ChainBlock& b, const NarrowSource& s, uint8_t* input,
                                           const Meanwhile& meanwhile) {
  for (int i = threadIdx.x; i < s.items; i += kChainThreads) {
    const int at = i >> s.wide_log2;
    const NarrowPlace p = {at >> s.length_log2, at & ((1 << s.length_log2) - 1),
                           (i & ((1 << s.wide_log2) - 1)) * 4};
    const float* from = s.words + p.row * s.row + p.position * s.channels + p.channel;
    uint4 w[1] = {LoadWords4(from)};
    meanwhile();
    const float4 v = SumWords4(w, from, 0, b.parity, b.watch);
    PutInput(s, input, p, PackFour<T>(v));
  }
}

// Fills the input. `meanwhile` runs, in some of the threads and perhaps more than once, while
// numbers are under way.
template <typename T, typename Meanwhile>
__device__ __forceinline__ void CollectNarrow(ChainBlock& b, const NarrowSource& s, uint8_t* input,
                                              const Meanwhile& meanwhile) {
  if (s.team_log2 == 0) return CopyNarrow<T>(b, s, input, meanwhile);
  ChainTeam team;
  team.index = static_cast<int>(threadIdx.x) >> s.team_log2;
  team.count = kChainThreads >> s.team_log2;
  team.warps = 1 << (s.team_log2 - 5);
  team.thread = static_cast<int>(threadIdx.x) & ((1 << s.team_log2) - 1);
  team.moments = b.moments + team.index * team.warps;
  for (int i = team.index; i < s.items; i += team.count) {
    FinishNarrow<T>(b, s, team, i, input, meanwhile);
    if (team.warps > 1 && i + team.count < s.items) team.Barrier();  // the moments are free again
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_INPUT_CUH_
