#ifndef KERNELS_WIDE_FINISH_CUH_
#define KERNELS_WIDE_FINISH_CUH_

#include "kernels/wide_route.cuh"

// From the sums that teams sent to a block's items to finished activations: a thread has four
// channels of a position.

namespace dp {

// What a thread finishes in every stage.
struct WideThread {
  int index, wave;
  int all, row;       // row of the item; the one that it is like, where there are not as many
  const float* cond;  // FiLM terms of the row's environment
};
__device__ __forceinline__ WideThread MakeWideThread(const ChainArgs& a, const WideItem& item,
                                                     int wave, int thread) {
  WideThread t;
  t.index = thread, t.wave = wave;
  t.all = wave * kWideSlots + item.slot;
  t.row = min(t.all, a.rows - 1);
  t.cond = a.film.cond + static_cast<size_t>(t.row / a.film.rows_per_env) * a.film.width;
  return t;
}

__device__ __forceinline__ float4 LoadConstant4(const float* from) {
  return __ldg(reinterpret_cast<const float4*>(from));
}

// What four channels of the group need beside their numbers; asked for before those are waited for.
// again: of the next wave, whose bias and norm are those of the one before.
__device__ __forceinline__ void LoadTerms(const ChainBlock& b, const WideRoute& r,
                                          const WideThread& thread, int channel, bool again,
                                          ChannelTerms& t) {
  const float4 zero = make_float4(0, 0, 0, 0), one = make_float4(1, 1, 1, 1);
  if (!again) {
    t.bias = t.scale = t.shift = zero;
    if (r.bias) t.bias = LoadConstant4(r.bias + channel);
    if (r.scale)
      t.scale = LoadConstant4(r.scale + channel), t.shift = LoadConstant4(r.shift + channel);
  }
  t.film_scale[0] = one, t.film_scale[1] = t.film_shift[0] = t.film_shift[1] = zero;
  if (r.film_bias < 0) return;
  const FilmArgs& f = b.a.film;
  const float* step =
      f.step_table + static_cast<size_t>(b.timesteps[thread.row]) * f.width + channel;
  const float* cond = thread.cond + channel;
  t.film_shift[0] = LoadConstant4(step + r.film_bias);
  t.film_shift[1] = LoadConstant4(cond + r.film_bias);
  if (r.film_scale < 0) return;
  t.film_scale[0] = LoadConstant4(step + r.film_scale);
  t.film_scale[1] = LoadConstant4(cond + r.film_scale);
}

// Mean and variance of `warps` * 128 numbers, of each warp its mean and sum of squared distances.
// One code for all numbers of warps up to kMost: jumps would take longer.
template <int kMost>
__device__ __forceinline__ float2 JoinMoments(const float2* of_warps, int warps, float per_number) {
  float2 of[kMost];
#pragma unroll
  for (int w = 0; w < kMost; ++w) of[w] = of_warps[w];
  float mean = of[0].x;
#pragma unroll
  for (int w = 1; w < kMost; ++w) mean = w < warps ? mean + of[w].x : mean;
  mean *= 128.0f * per_number;
  const auto squares_of = [&](int w) {
    return of[w].y + 128.0f * (of[w].x - mean) * (of[w].x - mean);
  };
  float squares = squares_of(0);
#pragma unroll
  for (int w = 1; w < kMost; ++w) squares = w < warps ? squares + squares_of(w) : squares;
  return make_float2(mean, squares * per_number);
}

// Mean and variance of an item of `warps` warps of a block whose items have up to kMost. A warp
// sums distances from one of its own numbers, so that one round of exchanges is enough.
template <int kMost>
__device__ __forceinline__ float2 ItemMoments(const float4& x, int thread, int warps,
                                              float per_number, float2* moments) {
  const float pivot = __shfl_sync(0xffffffffu, x.x, 0);
  const float dx = x.x - pivot, dy = x.y - pivot, dz = x.z - pivot, dw = x.w - pivot;
  float sum = (dx + dy) + (dz + dw), squares = (dx * dx + dy * dy) + (dz * dz + dw * dw);
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    squares += __shfl_xor_sync(0xffffffffu, squares, mask);
  }
  const float distance = sum * (1.0f / 128);
  if ((thread & 31) == 0)
    moments[thread >> 5] = make_float2(pivot + distance, squares - sum * distance);
  asm volatile("bar.sync 1, %0;" ::"r"(warps * 32) : "memory");
  return JoinMoments<kMost>(moments, warps, per_number);
}

// Multiplies a finished vector with the last layer's weights, and hands on the group's share.
__device__ __forceinline__ void MultiplyHead(const ChainBlock& b, const WideStage& st, int row,
                                             int group, const float4& y, int position,
                                             int channel) {
  const ChainArgs& a = b.a;
  const int lanes = 1 << (st.item_log2 - 2), elements = a.length * a.action_dim;
  float* words = a.head_words + (row * kWideGroups + group) * elements;
  for (int action = 0; action < a.action_dim; ++action) {
    const float4 w = Load4(b.head + (action << st.item_log2) + channel);
    float sum = (y.x * w.x + y.y * w.y) + (y.z * w.z + y.w * w.w);
    for (int mask = 1; mask < lanes; mask *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (row < a.rows && threadIdx.x % lanes == 0)
      StoreWord(words + position * a.action_dim + action, sum, b.parity);
  }
}

// Adds FiLM's terms of the condition to those of the timestep, which stand for both then; here and
// not where they are used.
__device__ __forceinline__ void JoinFilm(ChannelTerms& t) {
  const auto join = [](float4& to, const float4& v) {
    Add4(to, v);
    asm volatile("" : "+f"(to.x), "+f"(to.y), "+f"(to.z), "+f"(to.w));
  };
  join(t.film_scale[0], t.film_scale[1]);
  join(t.film_shift[0], t.film_shift[1]);
}

// Normalised, activated, modulated by joined terms.
__device__ __forceinline__ float4 Activated(const ChannelTerms& t, const float2& moments,
                                            const float4& x) {
  const float inverse = FastInverseRoot(moments.y + kFusedEpsilon);
  const auto one = [&](float v, float scale, float shift, float film_scale, float film_shift) {
    return MishFast((v - moments.x) * (scale * inverse) + shift) * film_scale + film_shift;
  };
  const float4 &s = t.film_scale[0], &b = t.film_shift[0];
  return make_float4(
      one(x.x, t.scale.x, t.shift.x, s.x, b.x), one(x.y, t.scale.y, t.shift.y, s.y, b.y),
      one(x.z, t.scale.z, t.shift.z, s.z, b.z), one(x.w, t.scale.w, t.shift.w, s.w, b.w));
}

// This thread's sums of all shares, `share` bytes apart. meanwhile() runs while they come.
template <typename T, int kShares, typename Meanwhile>
__device__ __forceinline__ float4 TakeShares(ChainBlock& b, const uint8_t* from, int thread,
                                             int share, uint32_t parity,
                                             const Meanwhile& meanwhile) {
  using Sums = WideSums<T>;
  WideShares<Sums, kShares> shares;
  shares.Ask(from + thread * sizeof(typename Sums::Vector), share);
  meanwhile();
  return shares.Take(parity, b.watch);
}
template <typename T, typename Meanwhile>
__device__ __forceinline__ float4 TakeSums(ChainBlock& b, int shares, const uint8_t* from,
                                           int thread, int share, uint32_t parity,
                                           const Meanwhile& meanwhile) {
  switch (shares) {
    case 1:
      return TakeShares<T, 1>(b, from, thread, share, parity, meanwhile);
    case 2:
      return TakeShares<T, 2>(b, from, thread, share, parity, meanwhile);
    case 4:
      return TakeShares<T, 4>(b, from, thread, share, parity, meanwhile);
    case 8:
      return TakeShares<T, 8>(b, from, thread, share, parity, meanwhile);
    default:
      return TakeShares<T, kWideMaxSplits>(b, from, thread, share, parity, meanwhile);
  }
}

// Who looks too soon for many shares looks again, which delays the others: measured, cycles.
inline constexpr int kManyShares = 8;
template <int kWaves>
inline constexpr int kManySharesLook = kWaves == 1 ? 450 : 250;

// The sums of four numbers of an item made whole: of two warpgroups, each of two halves of the in
// channels.
__device__ __forceinline__ float4 TakeWhole(const uint8_t* whole, int position, int channel) {
  constexpr int kPart = 16 * kWideSumsPitch;
  const float* at = reinterpret_cast<const float*>(whole) + position * kWideSumsPitch + channel;
  float4 sum = Load4(at), others = Load4(at + kPart);
  Add4(sum, Load4(at + kWholeTile));
  Add4(others, Load4(at + kPart + kWholeTile));
  Add4(sum, others);
  return sum;
}

// Rounds four numbers as they are stored.
template <typename T>
__device__ __forceinline__ uint2 Rounded(float4& x) {
  const Pack<T, 4> four = PackFour<T>(x);
  x = UnpackFour(four);
  return reinterpret_cast<const uint2&>(four);
}

// The thread's numbers of the 1x1 beside a stage's convolution, from channel `channel` of the group
// on.
template <typename T>
__device__ __forceinline__ float4 TakeRest(ChainBlock& b, const WideStage& st, const WideRoute& r,
                                           const WideThread& thread, uint32_t pass, int position,
                                           int channel) {
  const float4 bias = LoadConstant4(r.residual_bias + channel);
  float4 rest;
  if (st.shape.in_c > 0) {
    const WideTurn turn = TurnOf(r.turns_beside, pass, thread.wave);
    const uint8_t* from = r.from_beside + turn.bytes;
    rest = TakeSums<T>(b, 1 << st.splits_log2, from, thread.index, r.share, turn.parity, [] {});
  } else {
    const FirstConvArgs& f = b.a.first;
    const int channels = 1 << r.item_log2;
    rest = ConvolveFirst(b, b.first + f.taps * f.in_c * channels, 1, channels, thread.row, position,
                         channel);
  }
  Add4(rest, bias);
  return rest;
}

// What any thread of the block cleared is seen before what any of them stores from now on. By all
// threads, where they have no roles.
__device__ __forceinline__ void FenceBlock() {
  __threadfence();
  WaitAtBarrier<kProductsBarrier>();
}

// Where the block keeps numbers of its item from this position and channel of the group on.
template <typename T>
__device__ __forceinline__ uint8_t* KeepPlace(const WideRoute& r, int wave, int position,
                                              int channel) {
  const int pack = ((channel / kFusedPack) << r.length_log2) + position;
  return r.keep + 2 * wave * r.keep_pass + ((pack * kPackBytes) << r.keep_log2) +
         channel % kFusedPack * sizeof(T);
}

// Finishes this thread's item of a stage. `rest`: the thread's numbers of the residual; t: the
// channels' terms, of which those of the wave before stay; whole: the sums of an item made whole.
// kWaves: of rows, where threads have roles; 0: without. With roles once the block has sent its
// sums of the convolution; otherwise what is needed beside the sums is asked for while they are on
// their way.
template <typename T, int kWaves>
__device__ __forceinline__ void FinishItem(ChainBlock& b, const WideStage& st, const WideRoute& r,
                                           const WideThread& thread, uint32_t pass, float4& rest,
                                           ChannelTerms& t, const uint8_t* whole) {
  constexpr bool kRoles = kWaves > 0;
  constexpr int kMostWarps = kRoles ? kWideFinishers / 32 : kChainWarps;
  const int group = ItemOfBlock(blockIdx.x).group, wave = kWaves > 1 ? thread.wave : 0;
  const int first = thread.index * 4, shares = 1 << st.splits_log2;
  const bool any = first < r.numbers;
  if (!kRoles && !any) {
    if (st.fence) FenceBlock();
    return;
  }
  const int position = first >> r.item_log2, channel = first & ((1 << r.item_log2) - 1);
  uint8_t* keep = KeepPlace<T>(r, wave, position, channel);
  // all that is read beside the sums is read before they are waited for
  const WideTurn turn = TurnOf(r.turns, pass, wave);
  const uint8_t* from = r.from + turn.bytes;
  uint8_t* to = keep + b.parity * r.keep_pass;
  const int share = r.share, warps = r.numbers / 128;
  const float per_number = r.per_number;
  const bool first_layer = st.shape.in_c == 0, norm = r.scale, keeps = r.keep, add = st.add;
  const bool residual = st.shape.residual;
  float4 x;
  const auto prepare = [&] {
    if (any) {
      LoadTerms(b, r, thread, channel, wave > 0, t);
      if (r.keep) ClearFinished(keep + (b.parity ^ 1) * r.keep_pass);
    }
    if (kRoles && st.fence) __threadfence();  // all meet before they store
    if (!kRoles && st.fence) FenceBlock();
  };
  if (kRoles) {
    prepare();
    if (kWaves == 1 && any && !first_layer) JoinFilm(t);
    WaitAtBarrier<kSentBarrier>(wave);
    if (!any) return ArriveAtBarrier<kHandedOnBarrier>(wave);
    if (shares >= kManyShares) WaitCycles(kManySharesLook<kWaves>);
  }
  if (kRoles && st.whole) {
    if (kWaves > 1) JoinFilm(t);
    x = TakeWhole(whole, position, channel);
  } else if (!first_layer) {
    x = TakeSums<T>(b, shares, from, thread.index, share, turn.parity, [&] {
      if (!kRoles) prepare();
      if (kWaves > 1) JoinFilm(t);
    });
  } else {
    if (!kRoles) prepare();
    x = ConvolveFirst(b, b.first, b.a.first.taps, 1 << r.item_log2, thread.row, position, channel);
  }
  if (!kRoles || first_layer) JoinFilm(t);
  Add4(x, t.bias);
  if (norm)
    x = Activated(t, ItemMoments<kMostWarps>(x, thread.index, warps, per_number, b.moments), x);
  if (add) Add4(x, rest);
  const uint2 four = Rounded<T>(x);
  if (keeps) StoreFinished(to, four);
  if (add) rest = x;
  if (!keeps) MultiplyHead(b, st, thread.all, group, x, position, channel);
  if (kRoles) ArriveAtBarrier<kHandedOnBarrier>(wave);
  if (first_layer || residual) rest = TakeRest<T>(b, st, r, thread, pass, position, channel);
}

}  // namespace dp

#endif  // KERNELS_WIDE_FINISH_CUH_
