#ifndef KERNELS_CUDA_MEGAKERNEL_EPILOGUE_WARPS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EPILOGUE_WARPS_CUH_

#include "kernels/cuda/megakernel/layer_descriptor.cuh"

// From the sums that teams sent to a block's items to finished activations: a thread has four
// channels of a position.

namespace mjp {

// What a thread finishes in every stage; `step` is of a pass.
struct WideThread {
  int index, wave;
  int all, row;         // row of the item; the one that it is like, where there are not as many
  uint32_t step, cond;  // where FiLM's terms of the row's timestep and environment begin, numbers
};
__device__ __forceinline__ WideThread MakeWideThread(const ChainBlock& b, const WideItem& item,
                                                     int wave, int thread) {
  WideThread t;
  t.index = thread, t.wave = wave;
  t.all = wave * kWideSlots + item.slot;
  t.row = min(t.all, b.a.rows - 1);
  t.step = 0;
  t.cond = t.row / b.a.film.rows_per_env * b.a.film.width;
  return t;
}
// Goes on to the pass whose timesteps are set.
__device__ __forceinline__ void SetStep(const ChainBlock& b, WideThread& t) {
  t.step = b.timesteps[t.row] * b.a.film.width;
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
  const uint32_t step = thread.step + channel, cond = thread.cond + channel;
  t.film_shift[0] = LoadConstant4(f.step_table + (step + r.film_bias));
  t.film_shift[1] = LoadConstant4(f.cond + (cond + r.film_bias));
  if (r.film_scale < 0) return;
  t.film_scale[0] = LoadConstant4(f.step_table + (step + r.film_scale));
  t.film_scale[1] = LoadConstant4(f.cond + (cond + r.film_scale));
}

// Mean and variance of the item of the first `threads` threads, whole warps of up to kMost. From
// the sum of squares: what that loses where the mean is far from zero, 16-bit formats have lost
// before. One code for all numbers of warps: jumps would take longer.
template <int kMost>
__device__ __forceinline__ float2 ItemMoments(const float4& x, int thread, int threads,
                                              float per_number, float2* moments) {
  float sum = (x.x + x.y) + (x.z + x.w);
  float squares = (x.x * x.x + x.y * x.y) + (x.z * x.z + x.w * x.w);
  __syncwarp();
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    squares += __shfl_xor_sync(0xffffffffu, squares, mask);
  }
  if ((thread & 31) == 0) moments[thread >> 5] = make_float2(sum, squares);
  asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
  float2 of[kMost];
#pragma unroll
  for (int w = 0; w < kMost; ++w) of[w] = moments[w];
  sum = of[0].x, squares = of[0].y;
#pragma unroll
  for (int w = 1; w < kMost; ++w) {
    sum = w * 32 < threads ? sum + of[w].x : sum;
    squares = w * 32 < threads ? squares + of[w].y : squares;
  }
  const float mean = sum * per_number, variance = squares * per_number - mean * mean;
  return make_float2(mean, variance < 0.0f ? 0.0f : variance);  // NaN stays
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
inline constexpr int kManySharesLook = kWaves == 1 ? 550 : 250;

// The sums of four numbers of an item made whole: of two warpgroups, each of two halves of the in
// channels.
__device__ __forceinline__ float4 TakeWhole(const uint8_t* whole, int position, int channel) {
  const float* at = reinterpret_cast<const float*>(whole) + position * kWideSumsPitch + channel;
  float4 sum = Load4(at), others = Load4(at + kWholePart);
  Add4(sum, Load4(at + kWholeTile));
  Add4(others, Load4(at + kWholePart + kWholeTile));
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
  const uint32_t eight = static_cast<uint32_t>(channel) / kFusedPack;
  const uint32_t pack = (eight << r.length_log2) + position;
  return r.keep + (2 * wave * r.keep_pass + ((pack * kPackBytes) << r.keep_log2) +
                   static_cast<uint32_t>(channel) % kFusedPack * sizeof(T));
}

// What an item's numbers are made of: the sums of shares, or x, or what the block made whole.
struct ItemSums {
  const uint8_t* from;
  int shares, share;
  uint32_t parity;
  bool of_x, whole;
};
__device__ __forceinline__ ItemSums SumsOfItem(const WideStage& st, const WideRoute& r,
                                               uint32_t pass, int wave) {
  const WideTurn turn = TurnOf(r.turns, pass, wave);
  return {r.from + turn.bytes, 1 << st.splits_log2, r.share,
          turn.parity,         st.shape.in_c == 0,  st.whole};
}

// Rounds finished numbers, and stores them at `to` or multiplies them with the last layer.
template <typename T>
__device__ __forceinline__ void HandOn(const ChainBlock& b, const WideStage& st,
                                       const WideThread& thread, int position, int channel,
                                       bool keeps, uint8_t* to, float4& x) {
  const uint2 four = Rounded<T>(x);
  if (keeps) return StoreFinished(to, four);
  MultiplyHead(b, st, thread.all, ItemOfBlock(blockIdx.x).group, x, position, channel);
}

// Finishes this thread's item of a stage. `rest`: the thread's numbers of the residual, with roles
// in shared memory, where they take no registers and no moves between waves; t: the channels'
// terms, of which those of the wave before stay; whole: the sums of an item made whole. kWaves: of
// rows, where threads have roles; 0: without. With roles once the block has sent its sums of the
// convolution; otherwise what is needed beside the sums is asked for while they are on their way.
template <typename T, int kWaves>
__device__ __forceinline__ void FinishItem(ChainBlock& b, const WideStage& st, const WideRoute& r,
                                           const WideThread& thread, uint32_t pass, float4& rest,
                                           ChannelTerms& t, const uint8_t* whole) {
  constexpr bool kRoles = kWaves > 0;
  constexpr int kMostWarps = kRoles ? kWideFinishers / 32 : kChainWarps;
  const int wave = kWaves > 1 ? thread.wave : 0, first = thread.index * 4;
  const bool any = first < r.numbers;
  if (!kRoles && !any) {
    if (st.fence) FenceBlock();
    return;
  }
  const int position = first >> r.item_log2, channel = first & ((1 << r.item_log2) - 1);
  uint8_t* keep = KeepPlace<T>(r, wave, position, channel);
  // all that is read beside the sums is read before they are waited for
  const ItemSums sums = SumsOfItem(st, r, pass, wave);
  uint8_t* to = keep + b.parity * r.keep_pass;
  const int threads = r.numbers >> 2;
  const float per_number = r.per_number;
  const bool norm = r.scale, keeps = r.keep, add = st.add, residual = st.shape.residual;
  float4 x, kept;
  if (add) kept = rest;
  const auto prepare = [&] {
    if (any) {
      LoadTerms(b, r, thread, channel, wave > 0, t);
      if (r.keep) ClearFinished(keep + (b.parity ^ 1) * r.keep_pass);
    }
    if (st.fence) kRoles ? __threadfence() : FenceBlock();  // with roles all meet at a barrier
  };
  if (kRoles) {
    prepare();
    if (kWaves == 1 && any && !sums.of_x) JoinFilm(t);
    WaitAtBarrier<kSentBarrier>(wave);
    if (!any) return ArriveAtBarrier<kHandedOnBarrier>(wave);
    if (sums.shares >= kManyShares) WaitCycles(kManySharesLook<kWaves>);
  }
  if (kRoles && sums.whole) {
    if (kWaves > 1) JoinFilm(t);
    x = TakeWhole(whole, position, channel);
  } else if (!sums.of_x) {
    x = TakeSums<T>(b, sums.shares, sums.from, thread.index, sums.share, sums.parity, [&] {
      if (!kRoles) prepare();
      if (kWaves > 1) JoinFilm(t);
    });
  } else {
    if (!kRoles) prepare();
    x = ConvolveFirst(b, b.first, b.a.first.taps, 1 << r.item_log2, thread.row, position, channel);
    if (kRoles) JoinFilm(t);
  }
  if (!kRoles) JoinFilm(t);
  Add4(x, t.bias);
  if (norm)
    x = Activated(t, ItemMoments<kMostWarps>(x, thread.index, threads, per_number, b.moments), x);
  if (add) Add4(x, kept);
  HandOn<T>(b, st, thread, position, channel, keeps, to, x);
  if (kRoles) ArriveAtBarrier<kHandedOnBarrier>(wave);
  if (add) {
    rest = x;
  } else if (sums.of_x || residual) {
    rest = TakeRest<T>(b, st, r, thread, pass, position, channel);
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_EPILOGUE_WARPS_CUH_
