#ifndef KERNELS_CUDA_ROW_KERNEL_CLUSTERS_EPILOGUE_CUH_
#define KERNELS_CUDA_ROW_KERNEL_CLUSTERS_EPILOGUE_CUH_

#include "kernels/cuda/row_kernel/clusters_exchange.cuh"
#include "kernels/cuda/row_kernel/epilogue_parts.cuh"

// The epilogue of a norm group across clusters, by half of the owner's epilogue warps.

namespace mjp::row_kernel {

template <typename T, int kPairs>
class ClustersEpilogue {
 public:
  // Does what needs no sums of this layer, after those of the layer before have arrived.
  __device__ __forceinline__ void Prepare(const Cta& cta, const Layer& s, const FilmRows& film,
                                          const Sums& sums, const Activations& sent, uint32_t tag) {
    const int thread = static_cast<int>(threadIdx.x) % kGroupThreads;
    LoadedTerms loaded[kPairs];
#pragma unroll
    for (int j = 0; j < kPairs; ++j)
      loaded[j].Load(s, cta.a.terms, film,
                     LanePlace(s, 0, thread + j * kGroupThreads).OutChannel(s, cta.slice));
    pivot_bias_ = LoadNow(&cta.a.terms[s.terms + cta.slice * s.channels].x);
    group_sums_ = cta.shared + sums.At(cta.a.shared);
    uint2* mailbox = sent.Mailbox(cta, cta.slice);
    parts_log2_ = s.parts_log2, part_bytes_ = s.part_bytes;
    normalizes_ = s.normalizes, inverse_count_ = s.inverse_count;
    partner_ = 1 << s.pairs_log2, tag_ = tag;
    moments_ = reinterpret_cast<float2*>(cta.shared + cta.a.shared.moments) +
               threadIdx.x / kGroupThreads * (kGroupThreads / 32);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const LanePlace place(s, 0, thread + j * kGroupThreads);
      mine_[j] = place.mine;
      sums_at_[j] = s.SumsAtOwner(place.Row(s), place.pair);
      residual_[j] = ResidualOf(cta, s, place, loaded[j].of_layer.w);
      terms_[j] = loaded[j].Terms();
      // Lanes of neighbouring channels exchange: each sends both channels at one position.
      const int channel = place.channel - place.phase * s.channels;
      odd_ = channel % 2 != 0;
      const int position = (2 * place.pair + odd_) * s.phases + place.phase;
      to_[j] = mailbox + (position * s.channels + channel - odd_) / 2;
    }
  }

  // Does the rest, once the sums are there.
  __device__ __forceinline__ void Run() {
    float2 x[kPairs];
    const float pivot = AddParts(group_sums_, parts_log2_, part_bytes_).x + pivot_bias_;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      x[j] = AddParts(group_sums_ + sums_at_[j], parts_log2_, part_bytes_);
      x[j].x += terms_[j].bias, x[j].y += terms_[j].bias;
    }
    if (normalizes_) {
      const float2 moments = GroupMoments(x, pivot);
#pragma unroll
      for (int j = 0; j < kPairs; ++j) x[j] = Activated(x[j], terms_[j], moments);
    }
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const uint32_t own = PackTwo(T(), x[j].x + residual_[j].x, x[j].y + residual_[j].y);
      const uint32_t both =
          __byte_perm(own, __shfl_xor_sync(0xffffffffu, own, partner_), odd_ ? 0x3276 : 0x5410);
      if (mine_[j]) megakernel::Store8(to_[j], make_uint2(both, tag_));
    }
  }

 private:
  // What is added at the end to a pair of positions: the shortcut's sums, or the activations that
  // the block read. Both are there since the block's first convolution.
  __device__ __forceinline__ static float2 ResidualOf(const Cta& cta, const Layer& s,
                                                      const LanePlace& place, float shortcut_bias) {
    if (s.shortcut_parts_log2 >= 0) {
      const float2 v = AddParts(
          cta.shared + cta.a.shared.shortcut_sums + s.SumsAtOwner(place.Row(s), place.pair),
          s.shortcut_parts_log2, s.shortcut_part_bytes);
      return make_float2(v.x + shortcut_bias, v.y + shortcut_bias);
    }
    if (s.residual < 0) return make_float2(0, 0);
    const uint8_t* at =
        cta.shared + s.residual + place.channel * 2 + 2 * place.pair * s.residual_pitch;
    return make_float2(ToFloat(*reinterpret_cast<const T*>(at)),
                       ToFloat(*reinterpret_cast<const T*>(at + s.residual_pitch)));
  }

  // Mean and reciprocal deviation of the group, whose warps add up what each has. `pivot`: the
  // group's first value.
  __device__ __forceinline__ float2 GroupMoments(const float2 (&x)[kPairs], float pivot) const {
    const float2 of_warp = DistanceSums(x, mine_, pivot);
    if (threadIdx.x % 32 == 0) moments_[threadIdx.x % kGroupThreads / 32] = of_warp;
    const int half = static_cast<int>(threadIdx.x) / kGroupThreads;
    asm volatile("bar.sync %0, %1;" ::"r"(kGroupMoments + half), "n"(kGroupThreads) : "memory");
    float2 all = moments_[0];
#pragma unroll
    for (int i = 1; i < kGroupThreads / 32; ++i) all.x += moments_[i].x, all.y += moments_[i].y;
    return MomentsOf(pivot, all.x, all.y, inverse_count_);
  }

  ChannelTerms terms_[kPairs];
  float2 residual_[kPairs];
  bool mine_[kPairs];
  int sums_at_[kPairs];
  uint2* to_[kPairs];
  // Fields of the layer stand here, too: they are read before the wait.
  bool normalizes_, odd_;
  const uint8_t* group_sums_;
  float2* moments_;  // of each warp
  float pivot_bias_, inverse_count_;
  int parts_log2_, part_bytes_, partner_;
  uint32_t tag_;
};

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_CLUSTERS_EPILOGUE_CUH_
