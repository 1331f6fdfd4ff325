#ifndef KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_
#define KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_

#include "kernels/cuda/norm_conv/norm_prologue.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/row_kernel/row_kernel.cuh"

// The epilogue of a layer: a warp adds up the partial sums of one norm group at a time, normalises,
// activates, modulates, adds the residual and stores activations in every CTA of the cluster.

namespace mjp::row_kernel {

// Loads now what is used later, without waiting.
__device__ __forceinline__ float LoadEarly(const float* from) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(from));
  return v;
}

// Rows of FiLM's tables that a row of this pass reads.
struct FilmRows {
  const float *step, *cond;
};

// A lane's place in the warp's norm group: a channel at two positions.
struct LanePair {
  int channel, pair;  // of the CTA's (phases, channels); of the channel's positions
  bool mine;

  __device__ __forceinline__ LanePair(const Layer& s, int group, int j) {
    const int i = threadIdx.x % 32 + 32 * j, all = 1 << (s.group_channels_log2 + s.pairs_log2);
    mine = i < all;
    const int at = mine ? i : 0;
    channel = (group << s.group_channels_log2) + (at >> s.pairs_log2);
    pair = at & ((1 << s.pairs_log2) - 1);
  }
};

// What the epilogue needs for a channel besides the sums; its loads are issued before the products.
struct ChannelTerms {
  float bias = 0, scale = 0, shift = 0, shortcut_bias = 0;
  float film_scale[2] = {1, 0}, film_shift[2] = {0, 0};  // of the step, of the conditioning

  __device__ __forceinline__ void Load(const Layer& s, const FilmRows& film, int rank,
                                       const LanePair& p) {
    const int channel =
        rank * s.channels + (p.channel >= s.channels ? p.channel - s.channels : p.channel);
    bias = LoadEarly(s.bias + channel);
    if (s.scale) scale = LoadEarly(s.scale + channel), shift = LoadEarly(s.shift + channel);
    if (s.shortcut_k_split > 0) shortcut_bias = LoadEarly(s.shortcut_bias + channel);
    if (s.film_scale >= 0) {
      film_scale[0] = LoadEarly(film.step + s.film_scale + channel);
      film_scale[1] = LoadEarly(film.cond + s.film_scale + channel);
    }
    if (s.film_bias >= 0) {
      film_shift[0] = LoadEarly(film.step + s.film_bias + channel);
      film_shift[1] = LoadEarly(film.cond + s.film_bias + channel);
    }
  }
};

template <int kPairs>
__device__ __forceinline__ void LoadTerms(const Layer& s, const FilmRows& film, int rank, int group,
                                          ChannelTerms (&terms)[kMaxLanePairs]) {
#pragma unroll
  for (int j = 0; j < kPairs; ++j) terms[j].Load(s, film, rank, LanePair(s, group, j));
}

// Sum over the K parts, always in the same order.
__device__ __forceinline__ float2 AddParts(const float* sums, int parts, int part_sums) {
  float2 v = *reinterpret_cast<const float2*>(sums);
  for (int k = 1; k < parts; ++k) {
    const float2 next = *reinterpret_cast<const float2*>(sums + k * part_sums);
    v.x += next.x, v.y += next.y;
  }
  return v;
}

// Mean and reciprocal deviation of the warp's group of `count` values. Distances from one of them
// are summed, so that one round of shuffles is enough.
template <int kPairs>
__device__ __forceinline__ float2 GroupMoments(const float2 (&x)[kPairs],
                                               const bool (&mine)[kPairs], float count) {
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
  const float inverse = FastReciprocal(count), distance = sum * inverse;
  const float variance = fmaxf((squares - sum * distance) * inverse, 0.0f);
  return make_float2(pivot + distance, rsqrtf(variance + kNormEpsilon));
}

// Stores 16 bits at this shared address in CTA `rank` of the cluster.
__device__ __forceinline__ void StoreToCta(uint32_t shared, uint32_t value, int rank) {
#if __CUDA_ARCH__ >= 900
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared), "r"(rank));
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(value) : "memory");
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
                                          const float2& y, uint8_t* shared) {
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
    for (int r = 0; p.mine && r < ctas; ++r) StoreToCta(at, both, r);
  } else {
    if (!p.mine) return;
    *reinterpret_cast<uint16_t*>(to + first * s.output_pitch) = static_cast<uint16_t>(bits[0]);
    *reinterpret_cast<uint16_t*>(to + next * s.output_pitch) = static_cast<uint16_t>(bits[1]);
  }
}

// What is added at the end: the shortcut's sums, or the activations that the block read.
template <typename T>
__device__ __forceinline__ float2 ResidualOf(const Layer& s, const SharedLayout& layout,
                                             const LanePair& p, const ChannelTerms& t, int rank,
                                             const uint8_t* shared) {
  if (s.shortcut_k_split > 0) {
    const int pitch = s.n_tiles * kPositionTile;
    const float* sums = reinterpret_cast<const float*>(shared + layout.shortcut_sums) +
                        p.channel * pitch + p.pair * 2;
    const float2 v = AddParts(sums, s.shortcut_k_split, s.channels * pitch);
    return make_float2(v.x + t.shortcut_bias, v.y + t.shortcut_bias);
  }
  if (s.residual < 0) return make_float2(0, 0);
  const uint8_t* at =
      shared + s.residual + (rank * s.channels + p.channel) * 2 + 2 * p.pair * s.residual_pitch;
  return make_float2(ToFloat(*reinterpret_cast<const T*>(at)),
                     ToFloat(*reinterpret_cast<const T*>(at + s.residual_pitch)));
}

// The epilogue of norm group `group` of the CTA, by one warp.
template <typename T, bool kCluster, int kPairs>
__device__ __forceinline__ void RunGroup(const Layer& s, const SharedLayout& layout, int group,
                                         const ChannelTerms (&terms)[kMaxLanePairs], int rank,
                                         int ctas, uint8_t* shared) {
  const auto* sums = reinterpret_cast<const float*>(shared + layout.sums);
  const int pitch = s.n_tiles * kPositionTile, part_sums = s.channels * s.phases * pitch;
  float2 x[kPairs], residual[kPairs];
  bool mine[kPairs];
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const LanePair p(s, group, j);
    mine[j] = p.mine;
    x[j] = AddParts(sums + p.channel * pitch + p.pair * 2, s.k_split, part_sums);
    x[j].x += terms[j].bias, x[j].y += terms[j].bias;
    residual[j] = ResidualOf<T>(s, layout, p, terms[j], rank, shared);
  }
  if (s.scale) {
    const auto count = static_cast<float>(2 << (s.group_channels_log2 + s.pairs_log2));
    const float2 moments = GroupMoments(x, mine, count);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const ChannelTerms& t = terms[j];
      const float scale = t.scale * moments.y, shift = t.shift - moments.x * scale;
      const float film_scale = t.film_scale[0] + t.film_scale[1],
                  film_shift = t.film_shift[0] + t.film_shift[1];
      x[j].x = MishFast(x[j].x * scale + shift) * film_scale + film_shift;
      x[j].y = MishFast(x[j].y * scale + shift) * film_scale + film_shift;
    }
  }
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    x[j].x += residual[j].x, x[j].y += residual[j].y;
    StorePair<T, kCluster>(s, LanePair(s, group, j), rank, ctas, x[j], shared);
  }
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_EPILOGUE_CUH_
