#ifndef KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_
#define KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_

#include "kernels/cuda/row_kernel/epilogue_parts.cuh"

// The epilogue of a layer: a warp adds up the partial sums of one norm group at a time, normalises,
// activates, modulates, adds the residual and stores activations in every CTA of the cluster.
// Everything that does not need the sums is done before they are there.

namespace mjp::row_kernel {

// Mean and reciprocal deviation of the warp's group of 1 / `inverse_count` values. Distances from
// one of them are summed, so that one round of shuffles is enough.
template <int kPairs>
__device__ __forceinline__ float2 GroupMoments(const float2 (&x)[kPairs], bool mine,
                                               float inverse_count) {
  bool of_lane[kPairs];
#pragma unroll
  for (bool& pair : of_lane) pair = mine;
  const float pivot = __shfl_sync(0xffffffffu, x[0].x, 0);
  const float2 sums = DistanceSums(x, of_lane, pivot);
  return MomentsOf(pivot, sums.x, sums.y, inverse_count);
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
    const LanePlace place(s, group, threadIdx.x % 32);
    const int channel = place.OutChannel(s, cta.slice);
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
    parts_log2_ = s.parts_log2, part_bytes_ = s.part_bytes;
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
      x[j] = AddParts(sums_ + j * sums_step_, parts_log2_, part_bytes_);
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
    if (s.shortcut_parts_log2 >= 0) {
      const uint8_t* sums =
          cta.shared + cta.a.shared.shortcut_sums + place.SumsAt(s) + j * sums_step_;
      const float2 v = AddParts(sums, s.shortcut_parts_log2, s.shortcut_part_bytes);
      return make_float2(v.x + shortcut_bias, v.y + shortcut_bias);
    }
    if (s.residual < 0) return make_float2(0, 0);
    const uint8_t* at = cta.shared + s.residual + (channel + j * place.channels) * 2 +
                        2 * place.pair * s.residual_pitch;
    return make_float2(ToFloat(*reinterpret_cast<const T*>(at)),
                       ToFloat(*reinterpret_cast<const T*>(at + s.residual_pitch)));
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
  int sums_step_, output_step_, parts_log2_, part_bytes_;
  float inverse_count_;
  int partner_, selector_;  // of the exchange
  uint32_t barrier_;
  uint32_t there_[kMaxCtas], barriers_[kMaxCtas];  // output and barrier in each CTA, this one first
};

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_
