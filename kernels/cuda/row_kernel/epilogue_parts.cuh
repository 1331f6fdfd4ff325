#ifndef KERNELS_CUDA_ROW_KERNEL_EPILOGUE_PARTS_CUH_
#define KERNELS_CUDA_ROW_KERNEL_EPILOGUE_PARTS_CUH_

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/cuda/primitives/fragments.cuh"
#include "kernels/cuda/row_kernel/cta.cuh"

// What the epilogues of one CTA and of clusters have in common: places, terms, sums and moments.

namespace mjp::row_kernel {

// A lane's place in the warp's norm group: two positions, and kPairs channels so many apart.
struct LanePlace {
  bool mine;              // otherwise the group has fewer pairs than a warp has lanes
  int channel, channels;  // the first one, of the CTA's (phases, channels); from each to the next
  int phase, pair;        // of the channel's positions

  // Of pair `at` of the group.
  __device__ __forceinline__ LanePlace(const Layer& s, int group, int at) {
    mine = at < s.group_pairs;
    if (!mine) at = 0;
    channel = (group << s.group_channels_log2) + (at >> s.pairs_log2);
    channels = 32 >> s.pairs_log2;
    phase = channel >= s.channels;
    pair = at & ((1 << s.pairs_log2) - 1);
  }
  // Where its partial sums stand among those of a warp, and those of the next channel from there.
  __device__ __forceinline__ int SumsAt(const Layer& s) const {
    return Row(s) * SumsPitch(s) + pair * 8;
  }
  // Of the layer's tiles.
  __device__ __forceinline__ int Row(const Layer& s) const {
    return phase ? channel - s.channels + s.phase_rows : channel;
  }
  __device__ __forceinline__ int SumsStep(const Layer& s) const { return channels * SumsPitch(s); }
  // The first channel among those of the network's layer, of which the CTA makes slice `slice`.
  __device__ __forceinline__ int OutChannel(const Layer& s, int slice) const {
    return (slice - phase) * s.channels + channel;
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

// Norm, activation and FiLM of a channel, of two values.
__device__ __forceinline__ float2 Activated(const float2& x, const ChannelTerms& t,
                                            const float2& moments) {
  const float scale = t.scale * moments.y, shift = t.shift - moments.x * scale;
  return make_float2(MishFast(x.x * scale + shift) * t.film_scale + t.film_shift,
                     MishFast(x.y * scale + shift) * t.film_scale + t.film_shift);
}

// Mean and reciprocal deviation of a group of 1 / `inverse_count` values, of whose distances from
// `pivot` the sum and the sum of squares are given.
__device__ __forceinline__ float2 MomentsOf(float pivot, float sum, float squares,
                                            float inverse_count) {
  const float distance = sum * inverse_count;
  const float variance = fmaxf((squares - sum * distance) * inverse_count, 0.0f);
  return make_float2(pivot + distance, FastInverseRoot(variance + kNormEpsilon));
}

// Adds up, in this warp, the distances of its values from `pivot`, and their squares.
template <int kPairs>
__device__ __forceinline__ float2 DistanceSums(const float2 (&x)[kPairs],
                                               const bool (&mine)[kPairs], float pivot) {
  float sum = 0, squares = 0;
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const float dx = mine[j] ? x[j].x - pivot : 0.0f, dy = mine[j] ? x[j].y - pivot : 0.0f;
    sum = j == 0 ? dx + dy : sum + (dx + dy);
    squares = j == 0 ? dx * dx + dy * dy : squares + (dx * dx + dy * dy);
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    squares += __shfl_xor_sync(0xffffffffu, squares, mask);
  }
  return make_float2(sum, squares);
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_EPILOGUE_PARTS_CUH_
