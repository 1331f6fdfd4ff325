#ifndef KERNELS_CUDA_MEGAKERNEL_EPILOGUE_MATH_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EPILOGUE_MATH_CUH_

#include "kernels/cuda/megakernel/args.cuh"
#include "kernels/cuda/megakernel/tagged_value.cuh"
#include "kernels/cuda/norm_conv/norm_prologue.cuh"
#include "kernels/cuda/primitives/device_math.cuh"

// From the words of a convolution to finished activations: sum of the shares, group normalisation,
// Mish, FiLM, residual. A team of warps owns one (row, group) and holds it in registers.

namespace mjp {

// Warps that work together on one item.
struct ChainTeam {
  int index, count;   // of teams in the block
  int warps, thread;  // of the team, in the team
  float2* moments;    // (kChainWarps) of the block's warps

  __device__ __forceinline__ void Barrier() const {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + index), "r"(warps * 32) : "memory");
  }
};

// Teams for `items` of `vectors` vectors each.
__device__ __forceinline__ ChainTeam MakeTeam(int items, int vectors, float2* moments) {
  const int log2 = Log2(ChainTeamWarps(items, vectors));
  ChainTeam t;
  t.warps = 1 << log2;
  t.count = kChainWarps >> log2;
  t.index = static_cast<int>(threadIdx.x >> (5 + log2));
  t.thread = static_cast<int>(threadIdx.x & ((32 << log2) - 1));
  t.moments = moments + (t.index << log2);
  return t;
}

// What all finishing of a block shares.
struct ChainBlock {
  const ChainArgs& a;
  float* x;  // shared: (rows, border zeros, length * action_dim, zeros)
  // shared: weights of the first convolution, then of its 1x1 residual; of the last layer
  // (action_dim, channels), and its biases; those of the block's channels alone
  const float *first, *head, *head_bias;
  float2* moments;
  uint32_t parity;
  int* timesteps;  // shared: (rows)
  WaitWatch watch;

  __device__ __forceinline__ int XPitch() const { return a.length * a.action_dim + 2 * a.border; }
  __device__ __forceinline__ float* X(int row) const { return x + row * XPitch() + a.border; }
};

__device__ __forceinline__ float4 Load4(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ __forceinline__ void Add4(float4& to, const float4& v) {
  to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w;
}

// Four channels of a convolution of x with `taps` taps; weight (taps, in_c, channels).
__device__ __forceinline__ float4 ConvolveFirst(const ChainBlock& b, const float* weight, int taps,
                                                int channels, int row, int position, int channel) {
  const FirstConvArgs& f = b.a.first;
  const float* x = b.X(row) + (position - taps / 2) * f.in_c;
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 2
  for (int i = 0; i < taps * f.in_c; ++i) {
    const float4 w = Load4(weight + i * channels + channel);
    sum.x += w.x * x[i], sum.y += w.y * x[i], sum.z += w.z * x[i], sum.w += w.w * x[i];
  }
  return sum;
}

// Mean and variance of the team's `all` vectors, as many per thread; zeros in threads without. A
// warp sums distances from one of its own numbers, so that one round of exchanges is enough.
template <int kVectors>
__device__ __forceinline__ float2 TeamMoments(const ChainTeam& team, const float4 (&x)[kVectors],
                                              int vectors, int all) {
  const float pivot = __shfl_sync(0xffffffffu, x[0].x, 0);
  const bool mine = team.thread < all;
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
  const float numbers = static_cast<float>(vectors * min(all, 32) * 4);
  const float share = FastReciprocal(numbers), distance = sum * share;
  float mean = pivot + distance;
  squares -= sum * distance;
  if (team.warps == 1) return make_float2(mean, squares * share);
  if ((team.thread & 31) == 0) team.moments[team.thread >> 5] = make_float2(mean, squares);
  team.Barrier();
  float2 of[kChainWarps];
  float total = 0.0f;
#pragma unroll
  for (int w = 0; w < kChainWarps; ++w) {
    of[w] = w < team.warps ? team.moments[w] : make_float2(0, 0);
    total += of[w].x;
  }
  const float of_warps = FastReciprocal(static_cast<float>(team.warps));
  mean = total * of_warps, squares = 0.0f;
#pragma unroll
  for (int w = 0; w < kChainWarps; ++w)
    if (w < team.warps) squares += of[w].y + numbers * (of[w].x - mean) * (of[w].x - mean);
  return make_float2(mean, squares * share * of_warps);
}

// What a thread needs of four channels beside their numbers; asked for before the numbers are
// waited for, and not touched until they are there.
struct ChannelTerms {
  float4 bias, residual_bias, scale, shift;
  float4 film_scale[2], film_shift[2];  // of the timestep, of the condition
};

__device__ __forceinline__ ChannelTerms LoadTerms(const ChainBlock& b, const ChainSource& s,
                                                  int row, int channel) {
  const float4 zero = make_float4(0, 0, 0, 0), one = make_float4(1, 1, 1, 1);
  ChannelTerms t = {zero, zero, zero, zero, {one, zero}, {zero, zero}};
  if (s.bias) t.bias = Load4(s.bias + channel);
  if (s.residual_bias) t.residual_bias = Load4(s.residual_bias + channel);
  if (s.norm_scale) t.scale = Load4(s.norm_scale + channel);
  if (s.norm_scale) t.shift = Load4(s.norm_shift + channel);
  if (s.film_bias >= 0) {
    const FilmArgs& f = b.a.film;
    const int env = f.rows_per_env == 1 ? row : row / f.rows_per_env;
    const float* step = f.step_table + static_cast<size_t>(b.timesteps[row]) * f.width + channel;
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

// The numbers at one place of a source and of its residual, without their biases. The residual is
// asked for first, since it has long been there, and used last. Without kWords the source is the
// convolution of x, and there is no residual.
template <bool kWords>
__device__ __forceinline__ void GatherNumbers(ChainBlock& b, const ChainSource& s, int row,
                                              int position, int length, int channel, float4& x,
                                              float4& residual) {
  residual = make_float4(0, 0, 0, 0);
  if constexpr (kWords) {
    const uint32_t stride = length * s.channels;
    const size_t at = static_cast<size_t>(position) * s.channels + channel;
    uint4 of_residual[kChainMaxSplits] = {}, of_source[kChainMaxSplits] = {};
    const float* from_residual =
        s.residual + static_cast<size_t>(row * s.residual_splits) * stride + at;
    const float* from_source = s.words + static_cast<size_t>(row * s.splits) * stride + at;
    if (s.residual) AskWords4(of_residual, from_residual, stride, s.residual_splits, b.parity);
    if (s.words) {
      AskWords4(of_source, from_source, stride, s.splits, b.parity);
      x = SumWords4(of_source, from_source, stride, b.parity, b.watch);
    } else {
      x = ConvolveFirst(b, b.first, b.a.first.taps, b.a.first.out_c, row, position, channel);
    }
    if (s.residual) {
      residual = SumWords4(of_residual, from_residual, stride, b.parity, b.watch);
    } else if (s.first_residual) {
      const int terms = b.a.first.taps * b.a.first.in_c, channels = b.a.first.out_c;
      residual = ConvolveFirst(b, b.first + terms * channels, 1, channels, row, position, channel);
    }
  } else {
    x = ConvolveFirst(b, b.first, b.a.first.taps, b.a.first.out_c, row, position, channel);
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
  const float inverse = rsqrtf(moments.y + kFusedEpsilon);
  m.scale.x *= inverse, m.scale.y *= inverse, m.scale.z *= inverse, m.scale.w *= inverse;
  m.shift.x -= moments.x * m.scale.x, m.shift.y -= moments.x * m.scale.y;
  m.shift.z -= moments.x * m.scale.z, m.shift.w -= moments.x * m.scale.w;
  Add4(m.film_scale, t.film_scale[1]);
  Add4(m.film_shift, t.film_shift[1]);
  return m;
}

// Keeps four finished numbers as words: what was rounded to 16 bits leaves the lowest bit free.
template <typename T>
__device__ __forceinline__ void StoreKept(float* to, const Pack<T, 4>& pack, uint32_t parity) {
  StoreWords4(to, UnpackFour(pack), parity);
}

// Finishes item `item` of a row and gives put(position, channel, pack) four channels at a time.
// `keep`: also writes them down where the source says. kVectors: most of a thread.
template <typename T, int kVectors, bool kWords, typename Put>
__device__ __forceinline__ void FinishItem(ChainBlock& b, const ChainSource& s, int row, int item,
                                           int length, const ChainTeam& team, bool keep,
                                           const Put& put) {
  const int wide_log2 = Log2(s.item_channels / 4), threads_log2 = Log2(team.warps) + 5;
  const int all = length << wide_log2, vectors = max(1, all >> threads_log2);
  // a thread's channels are the same in all its vectors
  const int channel = item * s.item_channels + (team.thread & ((1 << wide_log2) - 1)) * 4;
  const auto position = [&](int v) { return (team.thread + (v << threads_log2)) >> wide_log2; };
  const bool mine = team.thread < all;

  ChannelTerms t = LoadTerms(b, s, row, channel);
  float4 x[kVectors], residual[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    x[v] = residual[v] = make_float4(0, 0, 0, 0);
    if (v >= vectors || !mine) continue;
    GatherNumbers<kWords>(b, s, row, position(v), length, channel, x[v], residual[v]);
    Add4(x[v], t.bias);
    Add4(residual[v], t.residual_bias);
  }
  Modulation m;
  if (s.norm_scale) m = Modulate(t, TeamMoments(team, x, vectors, all));
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (v >= vectors || !mine) break;
    float4 y = s.norm_scale ? m.Apply(x[v]) : x[v];
    Add4(y, residual[v]);
    const Pack<T, 4> pack = PackFour<T>(y);
    put(position(v), channel, pack);
    if (keep && s.keep)
      StoreKept(s.keep + (static_cast<size_t>(row) * length + position(v)) * s.channels + channel,
                pack, b.parity);
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_EPILOGUE_MATH_CUH_
