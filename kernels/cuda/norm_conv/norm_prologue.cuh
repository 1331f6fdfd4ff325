#ifndef KERNELS_CUDA_NORM_CONV_NORM_PROLOGUE_CUH_
#define KERNELS_CUDA_NORM_CONV_NORM_PROLOGUE_CUH_

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/cuda/norm_conv/norm_conv_plan.h"
#include "kernels/cuda/norm_conv/warp_mma.cuh"
#include "kernels/cuda/primitives/device_math.cuh"

// Loads rows of activations into shared memory, and normalises raw ones on the way: a warp has a
// (row, norm group) in registers, and needs no barrier for its statistics.

namespace mjp {

inline constexpr float kNormEpsilon = 1e-5f;

// Eight consecutive float32 parameters.
__device__ __forceinline__ void LoadEight(const float* from, float (&to)[kPackChannels]) {
  const float4 a = reinterpret_cast<const float4*>(from)[0];
  const float4 b = reinterpret_cast<const float4*>(from)[1];
  to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
  to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
}

// to = step_table + cond at `at`.
__device__ __forceinline__ void LoadFilmTerm(const float* step, const float* cond, int at,
                                             float (&to)[kPackChannels]) {
  float from_cond[kPackChannels];
  LoadEight(step + at, to);
  LoadEight(cond + at, from_cond);
  for (int v = 0; v < kPackChannels; ++v) to[v] += from_cond[v];
}

// Mean and inverse standard deviation of the values that a warp holds, `packs` packs of eight.
template <typename P>
__device__ __forceinline__ float2 WarpMoments(const P (&x)[kLanePacks], int lane, int packs) {
  float sum = 0.0f;
#pragma unroll
  for (int r = 0; r < kLanePacks; ++r) {
    if (lane + 32 * r >= packs) break;
    for (int v = 0; v < kPackChannels; ++v) sum += ToFloat(x[r].v[v]);
  }
  const float inverse_values = 1.0f / static_cast<float>(packs * kPackChannels),
              mean = WarpSum(sum) * inverse_values;
  float squares = 0.0f;
#pragma unroll
  for (int r = 0; r < kLanePacks; ++r) {
    if (lane + 32 * r >= packs) break;
    for (int v = 0; v < kPackChannels; ++v) {
      const float d = ToFloat(x[r].v[v]) - mean;
      squares += d * d;
    }
  }
  return make_float2(mean, rsqrtf(WarpSum(squares) * inverse_values + kNormEpsilon));
}

// Normalises, activates, modulates and adds the residual of one (row, group) by one warp.
// `put(position, channel, pack)` takes eight channels, counted within the source.
template <typename T, typename Put>
__device__ __forceinline__ void NormalizeGroup(const NormConvSource& s, int row, int length,
                                               int group, int lane, const Put& put) {
  using P = Pack<T, kPackChannels>;
  const int packs_log2 = Log2(s.group_channels / kPackChannels), packs = length << packs_log2;
  const int channel = group * s.group_channels + (lane & ((1 << packs_log2) - 1)) * kPackChannels;
  const size_t base = static_cast<size_t>(row) * length * s.channels + channel;
  const int first = lane >> packs_log2, stride = 32 >> packs_log2;  // this lane's positions
  const T* raw = static_cast<const T*>(s.x) + base;
  const T* residual = s.residual ? static_cast<const T*>(s.residual) + base : nullptr;
  P x[kLanePacks], add[kLanePacks];
#pragma unroll
  for (int r = 0; r < kLanePacks; ++r) {
    if (lane + 32 * r >= packs) break;
    const size_t at = static_cast<size_t>(first + r * stride) * s.channels;
    x[r] = *reinterpret_cast<const P*>(raw + at);
    if (residual) add[r] = *reinterpret_cast<const P*>(residual + at);
  }
  float weight[kPackChannels], bias[kPackChannels], scale[kPackChannels], shift[kPackChannels];
  LoadEight(s.weight + channel, weight);
  LoadEight(s.bias + channel, bias);
  if (s.film.step_table) {
    const FilmArgs& f = s.film;
    const float* step = f.step_table + static_cast<size_t>(f.row_step[row]) * f.width;
    const float* cond = f.cond + static_cast<size_t>(row / f.rows_per_env) * f.width;
    LoadFilmTerm(step, cond, f.bias_offset + channel, shift);
    if (f.scale_offset >= 0) LoadFilmTerm(step, cond, f.scale_offset + channel, scale);
  }
  const float2 moments = WarpMoments(x, lane, packs);
#pragma unroll
  for (int v = 0; v < kPackChannels; ++v) {
    weight[v] *= moments.y;
    bias[v] -= moments.x * weight[v];
  }
#pragma unroll
  for (int r = 0; r < kLanePacks; ++r) {
    if (lane + 32 * r >= packs) break;
    P out;
#pragma unroll
    for (int v = 0; v < kPackChannels; ++v) {
      float y = Activate<T>(ToFloat(x[r].v[v]) * weight[v] + bias[v], Activation::kMish);
      if (s.film.step_table) y = (s.film.scale_offset >= 0 ? y * scale[v] : y) + shift[v];
      if (residual) y += ToFloat(add[r].v[v]);
      out.v[v] = FromFloat<T>(y);
    }
    put(first + r * stride, channel, out);
  }
}

// Fills shared memory with channels [c0, c0 + channels) of rows [row0, row0 + rows); the padding,
// and rows beyond the last, become zero. `materialize`: this CTA stores the activations as well.
template <typename T>
__device__ __forceinline__ void LoadNormalizedInput(const NormConvArgs& a, uint8_t* shared,
                                                    const InputLayout& layout, int row0, int rows,
                                                    int c0, int channels, bool materialize) {
  using P = Pack<T, kPackChannels>;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  const bool second = c0 >= a.source[0].channels;
  const NormConvSource& s = a.source[second];
  const int from = second ? c0 - a.source[0].channels : c0;
  const int length = a.shape.in_length, live = min(rows, a.shape.rows - row0);
  const int packs_log2 = Log2(channels / kPackChannels), row_log2 = packs_log2 + Log2(length);
  const int mask = (1 << packs_log2) - 1;
  const auto at = [&](int r, int l, int channel) {
    return reinterpret_cast<P*>(shared + (layout.halo + r * layout.period + l) * layout.pitch +
                                (channel - from) * static_cast<int>(sizeof(T)));
  };
  // paddings: in front of the first row, and behind each
  for (int i = threadIdx.x; i < (rows + 1) << packs_log2; i += blockDim.x) {
    const int r = (i >> packs_log2) - 1, c = from + (i & mask) * kPackChannels;
    const int begin = r < 0 ? -layout.halo : length, end = r < 0 ? 0 : layout.period;
    for (int l = begin; l < end; ++l) *at(max(r, 0), l, c) = P{};
  }
  for (int i = threadIdx.x + (live << row_log2); i < rows << row_log2; i += blockDim.x)
    *at(i >> row_log2, (i >> packs_log2) & (length - 1), from + (i & mask) * kPackChannels) = P{};
  if (s.group_channels == 0) {
    for (int i = threadIdx.x; i < live << row_log2; i += blockDim.x) {
      const int position = i >> packs_log2, c = from + (i & mask) * kPackChannels;
      *at(i >> row_log2, position & (length - 1), c) = *reinterpret_cast<const P*>(
          static_cast<const T*>(s.x) +
          (static_cast<size_t>(row0) * length + position) * s.channels + c);
    }
    return;
  }
  const int groups_log2 = Log2(channels / kPackChannels) - Log2(s.group_channels / kPackChannels);
  const int first_group = from >> Log2(s.group_channels);
  for (int task = warp; task < live << groups_log2; task += warps) {
    const int r = task >> groups_log2, group = first_group + (task & ((1 << groups_log2) - 1));
    NormalizeGroup<T>(s, row0 + r, length, group, lane, [&](int l, int channel, const P& pack) {
      *at(r, l, channel) = pack;
      if (materialize && s.materialized) {
        *reinterpret_cast<P*>(static_cast<T*>(s.materialized) +
                              (static_cast<size_t>(row0 + r) * length + l) * s.channels + channel) =
            pack;
      }
    });
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_CONV_NORM_PROLOGUE_CUH_
