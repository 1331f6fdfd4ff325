#ifndef KERNELS_WIDE_FINISH_CUH_
#define KERNELS_WIDE_FINISH_CUH_

#include "kernels/chain_finish.cuh"
#include "kernels/wide_chain.cuh"

// From the sums that teams sent to a block's item to finished activations: a thread has four
// channels of a position.

namespace dp {

// Finished activations travel two by two, inverted: canonical numbers of 16 bits are never all ones
// (that would be a NaN that no conversion gives), so a zero says "not yet". Every pass writes the
// buffer that the pass before has cleared.
__device__ __forceinline__ uint4 LoadFinished(const void* at) {
  return LoadWords4(static_cast<const float*>(at));
}
__device__ __forceinline__ bool IsFinished(const uint4& w) {
  return w.x != 0 && w.y != 0 && w.z != 0 && w.w != 0;
}
__device__ __forceinline__ void StoreFinished(void* at, uint2 numbers) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(at), "r"(~numbers.x),
               "r"(~numbers.y)
               : "memory");
}

// Bytes from the beginning of a source to eight channels of a position.
__device__ __forceinline__ size_t FinishedAt(uint32_t parity, int row, int pack, int packs,
                                             int length_log2, int position) {
  const uint32_t at = ((parity * kWideRows + row) * packs + pack) << length_log2;
  return static_cast<size_t>(at + position) * kFusedPack * sizeof(uint16_t);
}

// This pass's words of a box for block 0, and their parity. Two boxes in turn are enough: who sends
// the sums of a stage has read an input that needed, of the same rows, every item of an earlier use
// of the box; where it reads a skip alone, by the items of the stages between.
struct WideWords {
  float* at;
  uint32_t parity;
};
__device__ __forceinline__ WideWords WordsOf(const WideChainArgs& w, const WideBox& box,
                                             uint32_t pass) {
  const uint32_t use = pass * box.uses + box.index;
  return {w.boxes + box.offset + static_cast<size_t>(use & 1) * kWideBlocks * box.words,
          (use >> 1 & 1) ^ 1};
}

// This thread's sums of all shares: asked for in Ask, waited for in Take.
class WideSums {
 public:
  __device__ __forceinline__ void Ask(const WideWords& words, const WideBox& box, int splits) {
    at_ = words.at + blockIdx.x * box.words + threadIdx.x * 4;
    stride_ = box.words / splits;
    splits_ = splits;
    parity_ = words.parity;
    AskWords4(words_, at_, stride_, min(splits, kAtOnce), parity_);
  }
  __device__ __forceinline__ float4 Take(WaitWatch& watch) {
    float4 sum = SumWords4(words_, at_, stride_, parity_, watch);
    if (splits_ > kAtOnce) {
      const float* rest = at_ + kAtOnce * stride_;
      AskWords4(words_, rest, stride_, splits_ - kAtOnce, parity_);
      Add4(sum, SumWords4(words_, rest, stride_, parity_, watch));
    }
    return sum;
  }

 private:
  static constexpr int kAtOnce = 8;
  const float* at_;
  int stride_, splits_;
  uint32_t parity_;
  uint4 words_[kAtOnce];
};

// Multiplies a finished vector with the last layer's weights, and hands on the group's share.
__device__ __forceinline__ void MultiplyHead(const ChainBlock& b, const WideStage& st,
                                             const WideItem& item, const float4& y, int position,
                                             int channel) {
  const ChainArgs& a = b.a;
  const int lanes = 1 << (st.item_log2 - 2), elements = a.length * a.action_dim;
  float* words = a.head_words + (item.row * kWideGroups + item.group) * elements;
  for (int action = 0; action < a.action_dim; ++action) {
    const float4 w = Load4(b.head + action * st.own.channels + channel);
    float sum = (y.x * w.x + y.y * w.y) + (y.z * w.z + y.w * w.w);
    for (int mask = 1; mask < lanes; mask *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (item.row < a.rows && threadIdx.x % lanes == 0)
      StoreWord(words + position * a.action_dim + action, sum, b.parity);
  }
}

// Normalised, activated, modulated.
__device__ __forceinline__ float4 Activated(const ChannelTerms& t, const float2& moments,
                                            const float4& x) {
  const float inverse = rsqrtf(moments.y + kFusedEpsilon);
  const auto one = [&](float v, float scale, float shift, float film_scale0, float film_scale1,
                       float film_shift0, float film_shift1) {
    const float y = MishFast((v - moments.x) * (scale * inverse) + shift);
    return y * (film_scale0 + film_scale1) + (film_shift0 + film_shift1);
  };
  const float4 &s0 = t.film_scale[0], &s1 = t.film_scale[1], &b0 = t.film_shift[0],
               &b1 = t.film_shift[1];
  return make_float4(one(x.x, t.scale.x, t.shift.x, s0.x, s1.x, b0.x, b1.x),
                     one(x.y, t.scale.y, t.shift.y, s0.y, s1.y, b0.y, b1.y),
                     one(x.z, t.scale.z, t.shift.z, s0.z, s1.z, b0.z, b1.z),
                     one(x.w, t.scale.w, t.shift.w, s0.w, s1.w, b0.w, b1.w));
}

// Finishes the block's item of a stage. `rest`: this thread's numbers of the block's residual.
template <typename T>
__device__ __forceinline__ void FinishItem(ChainBlock& b, const WideChainArgs& w,
                                           const WideStage& st, const WideItem& item, uint32_t pass,
                                           float4& rest) {
  const int quads_log2 = st.item_log2 - 2, thread = threadIdx.x;
  const int length_log2 = st.out_log2 + st.shape.phases - 1;
  const int vectors = 1 << (quads_log2 + length_log2);
  if (thread >= vectors) return;
  const int splits = 1 << st.splits_log2;
  WideSums sums;
  if (st.shape.in_c > 0) sums.Ask(WordsOf(w, st.sums, pass), st.sums, splits);
  const int row = min(item.row, b.a.rows - 1);  // rows beyond the last are like it
  const int position = thread >> quads_log2;
  const int channel = (item.group << st.item_log2) + (thread & ((1 << quads_log2) - 1)) * 4;
  uint8_t* keep = static_cast<uint8_t*>(st.keep) + channel % kFusedPack * sizeof(T);
  const auto kept_at = [&](uint32_t parity) {
    return FinishedAt(parity, item.row, channel / kFusedPack, st.own.channels / kFusedPack,
                      length_log2, position);
  };
  const bool keeps = st.keep != nullptr, adds = st.add, norms = st.own.norm_scale != nullptr;
  if (keeps) StoreFinished(keep + kept_at(b.parity ^ 1), make_uint2(~0u, ~0u));
  keep += kept_at(b.parity);
  float4 x;
  ChannelTerms t;
  if (st.shape.in_c == 0) {
    const FirstConvArgs& f = b.a.first;
    t = LoadTerms(b, st.own, row, channel);
    x = ConvolveFirst(b, b.first, f.taps, row, position, channel);
    rest = ConvolveFirst(b, b.first + f.taps * f.in_c * f.out_c, 1, row, position, channel);
    Add4(rest, t.residual_bias);
  } else {
    t = LoadTerms(b, st.own, row, channel);
    x = sums.Take(b.watch);
    if (st.shape.residual) {
      sums.Ask(WordsOf(w, st.beside, pass), st.beside, splits);
      rest = sums.Take(b.watch);
      Add4(rest, t.residual_bias);
    }
  }
  Add4(x, t.bias);
  if (norms) {
    const float4 all[1] = {x};
    x = Activated(t, TeamMoments({0, 1, vectors / 32, thread, b.moments}, all, 1, vectors), x);
  }
  if (adds) Add4(x, rest);
  Pack<T, 4> pack;
  pack.v[0] = FromFloat<T>(x.x), pack.v[1] = FromFloat<T>(x.y);
  pack.v[2] = FromFloat<T>(x.z), pack.v[3] = FromFloat<T>(x.w);
  if (keeps) StoreFinished(keep, reinterpret_cast<const uint2&>(pack));
  x = make_float4(ToFloat(pack.v[0]), ToFloat(pack.v[1]), ToFloat(pack.v[2]), ToFloat(pack.v[3]));
  if (adds) rest = x;
  if (!keeps) MultiplyHead(b, st, item, x, position, channel);
}

}  // namespace dp

#endif  // KERNELS_WIDE_FINISH_CUH_
