#ifndef KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_
#define KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_

#include "kernels/cuda/norm_conv/norm_prologue.cuh"
#include "kernels/cuda/primitives/fragments.cuh"
#include "kernels/cuda/row_kernel/row_kernel.cuh"

// The epilogue of a layer: a warp adds up the partial sums of one norm group at a time, normalises,
// activates, modulates, adds the residual and stores activations in every CTA of the cluster.
// Everything that does not need the sums is done before they are there.

namespace mjp::row_kernel {

// What a CTA's functions share.
struct Cta {
  const Args& a;
  uint8_t* shared;
  int row, rank;

  __device__ __forceinline__ const Layer& LayerAt(int i) const {
    return reinterpret_cast<const Layer*>(shared + a.shared.layers)[i];
  }
  __device__ __forceinline__ int Elements() const { return a.length * a.action_dim; }
};

// Rows of FiLM's tables that a row of this pass reads.
struct FilmRows {
  const float *step, *cond;
};

// A lane's place in the warp's norm group: two positions, and kPairs channels so many apart.
struct LanePlace {
  bool mine;              // otherwise the group has fewer pairs than a warp has lanes
  int channel, channels;  // the first one, of the CTA's (phases, channels); from each to the next
  int phase, pair;        // of the channel's positions

  __device__ __forceinline__ LanePlace(const Layer& s, int group) {
    const int lane = threadIdx.x % 32;
    mine = lane < s.group_pairs;
    const int at = mine ? lane : 0;
    channel = (group << s.group_channels_log2) + (at >> s.pairs_log2);
    channels = 32 >> s.pairs_log2;
    phase = channel >= s.channels;
    pair = at & ((1 << s.pairs_log2) - 1);
  }
  // Where its partial sums stand among those of a warp, and those of the next channel from there.
  __device__ __forceinline__ int SumsAt(const Layer& s) const {
    const int row = phase ? channel - s.channels + s.phase_rows : channel;
    return row * SumsPitch(s) + pair * 8;
  }
  __device__ __forceinline__ int SumsStep(const Layer& s) const { return channels * SumsPitch(s); }
  // The first channel among those of the network's layer.
  __device__ __forceinline__ int OutChannel(const Layer& s, int rank) const {
    return (rank - phase) * s.channels + channel;
  }

 private:
  __device__ __forceinline__ static int SumsPitch(const Layer& s) {
    return s.n_tiles * kPositionTile * 4;
  }
};

// What the epilogue needs for a channel besides the sums.
struct ChannelTerms {
  float bias, scale, shift;  // the norm's, but for the first
  float film_scale, film_shift;
};

// Terms as they are loaded; all loads are issued before the first one's value is used.
struct LoadedTerms {
  float4 of_layer;               // bias, norm's scale and shift, bias of the shortcut
  float film_scale, film_shift;  // of the step
  float cond_scale, cond_shift;  // of the conditioning, to be added

  __device__ __forceinline__ void Load(const Layer& s, const float4* terms, const FilmRows& film,
                                       int channel) {
    of_layer = LoadNow(terms + s.terms + channel);
    film_scale = 1, film_shift = cond_scale = cond_shift = 0;
    if (s.film_bias < 0) return;
    film_shift = LoadNow(film.step + s.film_bias + channel);
    cond_shift = LoadNow(film.cond + s.film_bias + channel);
    if (s.film_scale < 0) return;
    film_scale = LoadNow(film.step + s.film_scale + channel);
    cond_scale = LoadNow(film.cond + s.film_scale + channel);
  }
  __device__ __forceinline__ ChannelTerms Terms() const {
    return {of_layer.x, of_layer.y, of_layer.z, film_scale + cond_scale, film_shift + cond_shift};
  }
};

// Sum over 2^k_log2 parts, always in the same order.
__device__ __forceinline__ float2 AddParts(const uint8_t* sums, int k_log2, int part_bytes) {
  const auto part = [&](int k) { return *reinterpret_cast<const float2*>(sums + k * part_bytes); };
  float2 v[8] = {part(0)};
  if (k_log2 >= 1) v[1] = part(1);
  if (k_log2 >= 2) v[2] = part(2), v[3] = part(3);
  if (k_log2 >= 3) v[4] = part(4), v[5] = part(5), v[6] = part(6), v[7] = part(7);
  float2 sum = v[0];
  if (k_log2 >= 1) sum.x += v[1].x, sum.y += v[1].y;
  if (k_log2 >= 2) sum.x += v[2].x + v[3].x, sum.y += v[2].y + v[3].y;
  if (k_log2 >= 3) {
    sum.x += (v[4].x + v[5].x) + (v[6].x + v[7].x);
    sum.y += (v[4].y + v[5].y) + (v[6].y + v[7].y);
  }
  return sum;
}

// Mean and reciprocal deviation of the warp's group of 1 / `inverse_count` values. Distances from
// one of them are summed, so that one round of shuffles is enough.
template <int kPairs>
__device__ __forceinline__ float2 GroupMoments(const float2 (&x)[kPairs], bool mine,
                                               float inverse_count) {
  const float pivot = __shfl_sync(0xffffffffu, x[0].x, 0);
  float sum = 0, squares = 0;
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const float dx = mine ? x[j].x - pivot : 0.0f, dy = mine ? x[j].y - pivot : 0.0f;
    sum = j == 0 ? dx + dy : sum + (dx + dy);
    squares = j == 0 ? dx * dx + dy * dy : squares + (dx * dx + dy * dy);
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    squares += __shfl_xor_sync(0xffffffffu, squares, mask);
  }
  const float distance = sum * inverse_count;
  const float variance = fmaxf((squares - sum * distance) * inverse_count, 0.0f);
  return make_float2(pivot + distance, FastInverseRoot(variance + kNormEpsilon));
}

// Stores 32 bits at an address that InCta gave. `barrier`, likewise, counts the bytes.
__device__ __forceinline__ void StoreToCta(uint32_t there, uint32_t value, uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(there),
      "r"(value), "r"(barrier)
      : "memory");
#else
  __trap();
#endif
}

// The epilogue of one norm group of the CTA, by one warp.
template <typename T, bool kCluster, int kPairs>
class GroupEpilogue {
 public:
  // Does what needs no sums of this layer, after those of the layer before have arrived. `barrier`:
  // of a cluster, the one that counts the output.
  __device__ __forceinline__ void Prepare(const Cta& cta, const Layer& s, const FilmRows& film,
                                          int group, uint32_t barrier) {
    const LanePlace place(s, group);
    const int channel = place.OutChannel(s, cta.rank);
    LoadedTerms loaded[kPairs];
#pragma unroll
    for (int j = 0; j < kPairs; ++j)
      loaded[j].Load(s, cta.a.terms, film, channel + j * place.channels);
    mine_ = place.mine;
    sums_ = cta.shared + cta.a.shared.sums + place.SumsAt(s);
    sums_step_ = place.SumsStep(s);
    // Lanes of neighbouring channels exchange: each stores both channels at one position.
    const bool odd = channel % 2 != 0;
    partner_ = 1 << s.pairs_log2, selector_ = odd ? 0x3276 : 0x5410;
    const int position = (2 * place.pair + odd) * s.phases + place.phase;
    output_ = cta.shared + s.output + position * s.output_pitch + (channel - odd) * 2;
    output_step_ = place.channels * 2;
    k_log2_ = s.k_log2, part_bytes_ = s.part_bytes;
    normalizes_ = s.normalizes, inverse_count_ = s.inverse_count;
    barrier_ = barrier;
#pragma unroll
    for (int r = 0; kAhead && r < kMaxCtas; ++r) {
      const int rank = cta.rank ^ (r & (cta.a.ctas - 1));  // others again where there are fewer
      there_[r] = InCta(SharedAddress(output_), rank);
      barriers_[r] = InCta(barrier, rank);
    }
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      residual_[j] = ResidualOf(cta, s, place, channel, j, loaded[j].of_layer.w);
      terms_[j] = loaded[j].Terms();
    }
  }

  // Does the rest, once the sums are there.
  __device__ __forceinline__ void Run(const Cta& cta) {
    float2 x[kPairs];
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      x[j] = AddParts(sums_ + j * sums_step_, k_log2_, part_bytes_);
      x[j].x += terms_[j].bias, x[j].y += terms_[j].bias;
    }
    if (normalizes_) {
      const float2 moments = GroupMoments(x, mine_, inverse_count_);
#pragma unroll
      for (int j = 0; j < kPairs; ++j) x[j] = Activated(x[j], terms_[j], moments);
    }
    uint32_t both[kPairs];
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const uint32_t own = PackTwo(T(), x[j].x + residual_[j].x, x[j].y + residual_[j].y);
      both[j] = __byte_perm(own, __shfl_xor_sync(0xffffffffu, own, partner_), selector_);
    }
    if (mine_) Store(both, cta);
  }

 private:
  // What is added at the end to the lane's j-th channel: the shortcut's sums, or the activations
  // that the block read. Both are there since the block's first convolution.
  __device__ __forceinline__ float2 ResidualOf(const Cta& cta, const Layer& s,
                                               const LanePlace& place, int channel, int j,
                                               float shortcut_bias) const {
    if (s.shortcut_k_log2 >= 0) {
      const uint8_t* sums =
          cta.shared + cta.a.shared.shortcut_sums + place.SumsAt(s) + j * sums_step_;
      const float2 v = AddParts(sums, s.shortcut_k_log2, s.shortcut_part_bytes);
      return make_float2(v.x + shortcut_bias, v.y + shortcut_bias);
    }
    if (s.residual < 0) return make_float2(0, 0);
    const uint8_t* at = cta.shared + s.residual + (channel + j * place.channels) * 2 +
                        2 * place.pair * s.residual_pitch;
    return make_float2(ToFloat(*reinterpret_cast<const T*>(at)),
                       ToFloat(*reinterpret_cast<const T*>(at + s.residual_pitch)));
  }

  // Norm, activation and FiLM of a channel.
  __device__ __forceinline__ static float2 Activated(const float2& x, const ChannelTerms& t,
                                                     const float2& moments) {
    const float scale = t.scale * moments.y, shift = t.shift - moments.x * scale;
    return make_float2(MishFast(x.x * scale + shift) * t.film_scale + t.film_shift,
                       MishFast(x.y * scale + shift) * t.film_scale + t.film_shift);
  }

  __device__ __forceinline__ void Store(const uint32_t (&both)[kPairs], const Cta& cta) {
    if constexpr (kCluster) {
      // a power of two of them
      StoreInCtas<0, 2>(both, cta.rank);
      if (cta.a.ctas > 2) StoreInCtas<2, 4>(both, cta.rank);
      if (cta.a.ctas > 4) StoreInCtas<4, kMaxCtas>(both, cta.rank);
    } else {
#pragma unroll
      for (int j = 0; j < kPairs; ++j)
        *reinterpret_cast<uint32_t*>(output_ + j * output_step_) = both[j];
    }
  }
  template <int kBegin, int kEnd>
  __device__ __forceinline__ void StoreInCtas(const uint32_t (&both)[kPairs], int rank) {
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int r = kBegin; r < kEnd; ++r) {
        if constexpr (kAhead) {
          StoreToCta(there_[r] + j * output_step_, both[j], barriers_[r]);
        } else {
          StoreToCta(InCta(SharedAddress(output_) + j * output_step_, r ^ rank), both[j],
                     InCta(barrier_, r ^ rank));
        }
      }
    }
  }

  // Addresses in other CTAs are found ahead where registers allow.
  static constexpr bool kAhead = kCluster && kPairs <= 2;

  ChannelTerms terms_[kPairs];
  float2 residual_[kPairs];
  // Fields of the layer stand here, too: they are read before the wait.
  bool mine_, normalizes_;
  const uint8_t* sums_;
  uint8_t* output_;
  int sums_step_, output_step_, k_log2_, part_bytes_;
  float inverse_count_;
  int partner_, selector_;  // of the exchange
  uint32_t barrier_;
  uint32_t there_[kMaxCtas], barriers_[kMaxCtas];  // output and barrier in each CTA, this one first
};

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_
