#ifndef KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_
#define KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_

#include "kernels/cuda/norm_conv/norm_prologue.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/row_kernel/row_kernel.cuh"

// The epilogue of a layer: a warp adds up the partial sums of one norm group at a time, normalises,
// activates, modulates, adds the residual and stores activations in every CTA of the cluster.

namespace mjp::row_kernel {

// Rows of FiLM's tables that a row of this pass reads.
struct FilmRows {
  const float *step, *cond;
};

// A lane's place in the warp's norm group: a channel at two positions.
struct LanePair {
  int channel, pair;  // of the CTA's (phases, channels); of the channel's positions
  bool mine;

  __device__ __forceinline__ LanePair(const Layer& s, int group, int j) {
    const int i = threadIdx.x % 32 + 32 * j;
    mine = i < s.group_pairs;
    const int at = mine ? i : 0;
    channel = (group << s.group_channels_log2) + (at >> s.pairs_log2);
    pair = at & ((1 << s.pairs_log2) - 1);
  }
};

// What the epilogue needs for a channel besides the sums; its loads are issued a layer before.
struct ChannelTerms {
  float4 of_layer;               // bias, norm's scale and shift, bias of the shortcut
  float film_scale, film_shift;  // of the step
  float cond_scale, cond_shift;  // of the conditioning, to be added

  __device__ __forceinline__ void Load(const Layer& s, const float4* terms, const FilmRows& film,
                                       int rank, const LanePair& p) {
    const int slice = p.channel >= s.channels ? p.channel - s.channels : p.channel;
    const int channel = rank * s.channels + slice;
    of_layer = LoadNow(terms + s.terms + channel);
    film_scale = 1, film_shift = cond_scale = cond_shift = 0;
    if (s.film_bias < 0) return;
    film_shift = LoadNow(film.step + s.film_bias + channel);
    cond_shift = LoadNow(film.cond + s.film_bias + channel);
    if (s.film_scale < 0) return;
    film_scale = LoadNow(film.step + s.film_scale + channel);
    cond_scale = LoadNow(film.cond + s.film_scale + channel);
  }
};

template <int kPairs>
__device__ __forceinline__ void LoadTerms(const Layer& s, const float4* from, const FilmRows& film,
                                          int rank, int group,
                                          ChannelTerms (&terms)[kMaxLanePairs]) {
#pragma unroll
  for (int j = 0; j < kPairs; ++j) terms[j].Load(s, from, film, rank, LanePair(s, group, j));
}

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
__device__ __forceinline__ float2 GroupMoments(const float2 (&x)[kPairs],
                                               const bool (&mine)[kPairs], float inverse_count) {
  const float pivot = __shfl_sync(0xffffffffu, x[0].x, 0);
  float sum = 0, squares = 0;
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    if (!mine[j]) continue;
    const float dx = x[j].x - pivot, dy = x[j].y - pivot;
    sum += dx + dy;
    squares += dx * dx + dy * dy;
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

// Stores 32 bits at this shared address in CTA `rank` of the cluster, whose barrier `barrier`
// counts the bytes.
__device__ __forceinline__ void StoreToCta(uint32_t shared, uint32_t value, uint32_t barrier,
                                           int rank) {
#if __CUDA_ARCH__ >= 900
  uint32_t to, there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(barrier), "r"(rank));
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to),
      "r"(value), "r"(there)
      : "memory");
#else
  __trap();
#endif
}

template <typename T>
__device__ __forceinline__ uint32_t BitsOf(float v) {
  const T stored = FromFloat<T>(v);
  return reinterpret_cast<const uint16_t&>(stored);
}

// Stores a channel's activations at two positions.
template <typename T, bool kCluster>
__device__ __forceinline__ void StorePair(const Layer& s, const LanePair& p, int rank, int ctas,
                                          const float2& y, uint32_t barrier, uint8_t* shared) {
  const int phase = p.channel >= s.channels;
  const int channel = rank * s.channels + p.channel - phase * s.channels;
  const int first = 2 * p.pair * s.phases + phase, next = first + s.phases;
  const uint32_t bits[2] = {BitsOf<T>(y.x), BitsOf<T>(y.y)};
  uint8_t* to = shared + s.output + channel * 2;
  if constexpr (kCluster) {
    // two lanes of neighbouring channels exchange: each stores both channels at one position
    const bool odd = channel % 2 != 0;
    const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? bits[0] : bits[1], 1 << s.pairs_log2);
    const uint32_t both = odd ? other | bits[1] << 16 : bits[0] | other << 16;
    const uint32_t at = SharedAddress(to) - (odd ? 2 : 0) + (odd ? next : first) * s.output_pitch;
    for (int r = 0; p.mine && r < ctas; ++r) StoreToCta(at, both, barrier, r);
  } else {
    if (!p.mine) return;
    *reinterpret_cast<uint16_t*>(to + first * s.output_pitch) = static_cast<uint16_t>(bits[0]);
    *reinterpret_cast<uint16_t*>(to + next * s.output_pitch) = static_cast<uint16_t>(bits[1]);
  }
}

// Where the partial sums of a lane's pair stand among those of a warp.
__device__ __forceinline__ int SumsOf(const Layer& s, const LanePair& p) {
  const int row = p.channel < s.channels ? p.channel : p.channel - s.channels + s.phase_rows;
  return (row * s.n_tiles * kPositionTile + p.pair * 2) * 4;
}

// What is added at the end: the shortcut's sums, or the activations that the block read.
template <typename T>
__device__ __forceinline__ float2 ResidualOf(const Layer& s, const SharedLayout& layout,
                                             const LanePair& p, const ChannelTerms& t, int rank,
                                             const uint8_t* shared) {
  if (s.shortcut_k_log2 >= 0) {
    const float2 v = AddParts(shared + layout.shortcut_sums + SumsOf(s, p), s.shortcut_k_log2,
                              s.shortcut_part_bytes);
    return make_float2(v.x + t.of_layer.w, v.y + t.of_layer.w);
  }
  if (s.residual < 0) return make_float2(0, 0);
  const uint8_t* at =
      shared + s.residual + (rank * s.channels + p.channel) * 2 + 2 * p.pair * s.residual_pitch;
  return make_float2(ToFloat(*reinterpret_cast<const T*>(at)),
                     ToFloat(*reinterpret_cast<const T*>(at + s.residual_pitch)));
}

// The epilogue of norm group `group` of the CTA, by one warp. `barrier`: of a cluster, the one that
// counts this layer's output.
template <typename T, bool kCluster, int kPairs>
__device__ __forceinline__ void RunGroup(const Layer& s, const SharedLayout& layout, int group,
                                         const ChannelTerms (&terms)[kMaxLanePairs], int rank,
                                         int ctas, uint32_t barrier, uint8_t* shared) {
  float2 x[kPairs], residual[kPairs];
  bool mine[kPairs];
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const LanePair p(s, group, j);
    mine[j] = p.mine;
    x[j] = AddParts(shared + layout.sums + SumsOf(s, p), s.k_log2, s.part_bytes);
    x[j].x += terms[j].of_layer.x, x[j].y += terms[j].of_layer.x;
    residual[j] = ResidualOf<T>(s, layout, p, terms[j], rank, shared);
  }
  if (s.normalizes) {
    const float2 moments = GroupMoments(x, mine, s.inverse_count);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const ChannelTerms& t = terms[j];
      const float scale = t.of_layer.y * moments.y, shift = t.of_layer.z - moments.x * scale;
      const float film_scale = t.film_scale + t.cond_scale,
                  film_shift = t.film_shift + t.cond_shift;
      x[j].x = MishFast(x[j].x * scale + shift) * film_scale + film_shift;
      x[j].y = MishFast(x[j].y * scale + shift) * film_scale + film_shift;
    }
  }
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    x[j].x += residual[j].x, x[j].y += residual[j].y;
    StorePair<T, kCluster>(s, LanePair(s, group, j), rank, ctas, x[j], barrier, shared);
  }
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_
