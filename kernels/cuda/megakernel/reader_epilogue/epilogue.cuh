#ifndef KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_EPILOGUE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_EPILOGUE_CUH_

#include "kernels/cuda/megakernel/cta_state.cuh"

// The epilogue of the reader-epilogue kernel: from a convolution's partial sums to activations
// (sum, GroupNorm, Mish, FiLM, residual). A group of warps has one output tile (row, norm group)
// and holds it in registers.

namespace mjp::megakernel {

// Warps that share the reduction over one output tile.
struct ReductionGroup {
  int index, count;   // of the groups of the CTA
  int warps, thread;  // of the group, in the group
  float2* moments;    // (kMmaWarps) of the CTA's warps

  __device__ __forceinline__ void Barrier() const {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + index), "r"(warps * 32) : "memory");
  }
};

// Groups for `tiles` output tiles of `vectors` vectors each.
__device__ __forceinline__ ReductionGroup MakeReductionGroup(int tiles, int vectors,
                                                             float2* moments) {
  const int log2 = Log2(WarpsPerTile(tiles, vectors));
  ReductionGroup g;
  g.warps = 1 << log2;
  g.count = kMmaWarps >> log2;
  g.index = static_cast<int>(threadIdx.x >> (5 + log2));
  g.thread = static_cast<int>(threadIdx.x & ((32 << log2) - 1));
  g.moments = moments + (g.index << log2);
  return g;
}

// Mean and variance of the group's `all` vectors, as many per thread; zeros in threads without. A
// warp sums distances from one of its own values, so that one round of shuffles is enough.
template <int kVectors>
__device__ __forceinline__ float2 GroupMoments(const ReductionGroup& group,
                                               const float4 (&x)[kVectors], int vectors, int all) {
  const float pivot = __shfl_sync(0xffffffffu, x[0].x, 0);
  const bool mine = group.thread < all;
  float sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (v < vectors && mine) {
      const float dx = x[v].x - pivot, dy = x[v].y - pivot, dz = x[v].z - pivot,
                  dw = x[v].w - pivot;
      sum += (dx + dy) + (dz + dw);
      squares += (dx * dx + dy * dy) + (dz * dz + dw * dw);
    }
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    squares += __shfl_xor_sync(0xffffffffu, squares, mask);
  }
  const float values = static_cast<float>(vectors * min(all, 32) * 4);
  const float inverse_values = FastReciprocal(values), distance = sum * inverse_values;
  float mean = pivot + distance;
  squares -= sum * distance;
  if (group.warps == 1) return make_float2(mean, squares * inverse_values);
  if ((group.thread & 31) == 0) group.moments[group.thread >> 5] = make_float2(mean, squares);
  group.Barrier();
  float2 of[kMmaWarps];
  float total = 0.0f;
#pragma unroll
  for (int w = 0; w < kMmaWarps; ++w) {
    of[w] = w < group.warps ? group.moments[w] : make_float2(0, 0);
    total += of[w].x;
  }
  const float of_warps = FastReciprocal(static_cast<float>(group.warps));
  mean = total * of_warps, squares = 0.0f;
#pragma unroll
  for (int w = 0; w < kMmaWarps; ++w)
    if (w < group.warps) squares += of[w].y + values * (of[w].x - mean) * (of[w].x - mean);
  return make_float2(mean, squares * inverse_values * of_warps);
}

// Loads the epilogue's terms of four channels of a source.
__device__ __forceinline__ ChannelTerms LoadSourceTerms(const CtaState& cta,
                                                        const EpilogueSource& s, int row,
                                                        int channel) {
  const float4 zero = make_float4(0, 0, 0, 0), one = make_float4(1, 1, 1, 1);
  ChannelTerms t = {zero, zero, zero, zero, {one, zero}, {zero, zero}};
  if (s.bias) t.bias = Load4(s.bias + channel);
  if (s.shortcut_bias) t.shortcut_bias = Load4(s.shortcut_bias + channel);
  if (s.norm_scale) t.scale = Load4(s.norm_scale + channel);
  if (s.norm_scale) t.shift = Load4(s.norm_shift + channel);
  if (s.film_bias >= 0) {
    const FilmTables& f = cta.a.film;
    const int env = f.rows_per_env == 1 ? row : row / f.rows_per_env;
    const float* step = f.step_table + static_cast<size_t>(cta.timesteps[row]) * f.width + channel;
    const float* cond = f.cond + static_cast<size_t>(env) * f.width + channel;
    t.film_shift[0] = Load4(step + s.film_bias);
    t.film_shift[1] = Load4(cond + s.film_bias);
    if (s.film_scale >= 0) {
      t.film_scale[0] = Load4(step + s.film_scale);
      t.film_scale[1] = Load4(cond + s.film_scale);
    }
  }
  return t;
}

// The values at one position of a source and of its residual, without their biases. The residual is
// loaded first, since it arrived long ago, and used last. Without kFromValues the source is the
// convolution of x, and there is no residual.
template <bool kFromValues>
__device__ __forceinline__ void GatherSums(CtaState& cta, const EpilogueSource& s, int row,
                                           int position, int length, int channel, float4& x,
                                           float4& residual) {
  residual = make_float4(0, 0, 0, 0);
  if constexpr (kFromValues) {
    const uint32_t stride = length * s.channels;
    const size_t at = static_cast<size_t>(position) * s.channels + channel;
    uint4 residual_values[kMaxPartialSums] = {}, source_values[kMaxPartialSums] = {};
    const float* from_residual =
        s.residual + static_cast<size_t>(row * s.residual_split_k) * stride + at;
    const float* from_source = s.values + static_cast<size_t>(row * s.split_k) * stride + at;
    if (s.residual)
      IssueTagged4(residual_values, from_residual, stride, s.residual_split_k, cta.epoch);
    if (s.values) {
      IssueTagged4(source_values, from_source, stride, s.split_k, cta.epoch);
      x = ReceiveSum4(source_values, from_source, stride, cta.epoch, cta.watchdog);
    } else {
      x = ConvolveFirst(cta, cta.first, cta.a.first.taps, cta.a.first.out_c, row, position,
                        channel);
    }
    if (s.residual) {
      residual = ReceiveSum4(residual_values, from_residual, stride, cta.epoch, cta.watchdog);
    } else if (s.shortcut_of_x) {
      const int terms = cta.a.first.taps * cta.a.first.in_c, channels = cta.a.first.out_c;
      residual =
          ConvolveFirst(cta, cta.first + terms * channels, 1, channels, row, position, channel);
    }
  } else {
    x = ConvolveFirst(cta, cta.first, cta.a.first.taps, cta.a.first.out_c, row, position, channel);
  }
}

// Normalisation, Mish and FiLM of four channels.
struct Modulation {
  float4 scale, shift, film_scale, film_shift;

  __device__ __forceinline__ float4 Apply(const float4& x) const {
    return make_float4(MishFast(x.x * scale.x + shift.x) * film_scale.x + film_shift.x,
                       MishFast(x.y * scale.y + shift.y) * film_scale.y + film_shift.y,
                       MishFast(x.z * scale.z + shift.z) * film_scale.z + film_shift.z,
                       MishFast(x.w * scale.w + shift.w) * film_scale.w + film_shift.w);
  }
};

// moments: mean and variance.
__device__ __forceinline__ Modulation Modulate(const ChannelTerms& t, const float2& moments) {
  Modulation m = {t.scale, t.shift, t.film_scale[0], t.film_shift[0]};
  const float inverse = rsqrtf(moments.y + kNormEpsilon);
  m.scale.x *= inverse, m.scale.y *= inverse, m.scale.z *= inverse, m.scale.w *= inverse;
  m.shift.x -= moments.x * m.scale.x, m.shift.y -= moments.x * m.scale.y;
  m.shift.z -= moments.x * m.scale.z, m.shift.w -= moments.x * m.scale.w;
  Add4(m.film_scale, t.film_scale[1]);
  Add4(m.film_shift, t.film_shift[1]);
  return m;
}

// Materialises four activations as tagged values: rounding to 16 bits leaves the lowest bit free.
template <typename T>
__device__ __forceinline__ void StoreMaterialized(float* to, const Pack<T, 4>& pack,
                                                  uint32_t epoch) {
  StoreTagged4(to, UnpackFour(pack), epoch);
}

// Runs the epilogue of output tile `tile` of a row and calls put(position, channel, pack) for four
// channels at a time. `materialize`: also stores them where the source says. kVectors: most of a
// thread.
template <typename T, int kVectors, bool kFromValues, typename Put>
__device__ __forceinline__ void NormalizeSource(CtaState& cta, const EpilogueSource& s, int row,
                                                int tile, int length, const ReductionGroup& group,
                                                bool materialize, const Put& put) {
  const int vectors_log2 = Log2(s.group_channels / 4), threads_log2 = Log2(group.warps) + 5;
  const int all = length << vectors_log2, vectors = max(1, all >> threads_log2);
  // a thread's channels are the same in all its vectors
  const int channel = tile * s.group_channels + (group.thread & ((1 << vectors_log2) - 1)) * 4;
  const auto position = [&](int v) { return (group.thread + (v << threads_log2)) >> vectors_log2; };
  const bool mine = group.thread < all;

  ChannelTerms t = LoadSourceTerms(cta, s, row, channel);
  float4 x[kVectors], residual[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    x[v] = residual[v] = make_float4(0, 0, 0, 0);
    if (v >= vectors || !mine) continue;
    GatherSums<kFromValues>(cta, s, row, position(v), length, channel, x[v], residual[v]);
    Add4(x[v], t.bias);
    Add4(residual[v], t.shortcut_bias);
  }
  Modulation m;
  if (s.norm_scale) m = Modulate(t, GroupMoments(group, x, vectors, all));
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (v >= vectors || !mine) break;
    float4 y = s.norm_scale ? m.Apply(x[v]) : x[v];
    Add4(y, residual[v]);
    const Pack<T, 4> pack = PackFour<T>(y);
    put(position(v), channel, pack);
    if (materialize && s.materialized)
      StoreMaterialized(
          s.materialized + (static_cast<size_t>(row) * length + position(v)) * s.channels + channel,
          pack, cta.epoch);
  }
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_EPILOGUE_CUH_
