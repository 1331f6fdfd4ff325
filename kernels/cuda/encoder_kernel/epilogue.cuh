#ifndef KERNELS_CUDA_ENCODER_KERNEL_EPILOGUE_CUH_
#define KERNELS_CUDA_ENCODER_KERNEL_EPILOGUE_CUH_

#include "kernels/cuda/encoder_kernel/products.cuh"
#include "kernels/cuda/norm/moments.cuh"
#include "kernels/cuda/primitives/device_math.cuh"

// What follows a layer's products: partial sums added, group norm over the cluster, residual, ReLU,
// and the way of the map to those CTAs that read it next. A vector is 8 channels at a position; a
// thread has the same vectors in all layers of a block, and keeps the residual's in registers.

namespace mjp::encoder_kernel {

constexpr float kEpsilon = 1e-5f;
constexpr int kVectorChannels = 8;

// Of each slice, for two layers in turn, where all CTAs with slices of the group write; of this
// CTA's warps; what the writes from other CTAs arrive at; and where that and the input are in all
// CTAs.
struct Exchange {
  Moment moments[2][kMostCtas][kMostGroups], of_warps[kWarps][kMostGroups];
  uint64_t moments_here[2], map_here;
  struct {
    uint32_t input, map_here;
  } in_cta[kMostCtas];
};
static_assert(sizeof(Exchange) + kMostLayers * sizeof(Layer) <= kTableBytes);

// The channels of a thread's vectors.
struct Channels {
  int log2, vectors, vector;  // of 8 channels in the CTA's share; this thread's
  int first;                  // channel of the map
  float4 scale[2], shift[2];

  __device__ __forceinline__ Channels(const Layer& l, const Share& share) {
    log2 = l.tiles_log2 + 1, vectors = 1 << log2;
    vector = static_cast<int>(threadIdx.x) & (vectors - 1);
    first = share.part * l.Tiles() * kTileChannels + vector * kVectorChannels;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      scale[i] = LoadNow(reinterpret_cast<const float4*>(l.scale + first) + i);
      shift[i] = LoadNow(reinterpret_cast<const float4*>(l.shift + first) + i);
    }
  }
  __device__ __forceinline__ int Position(int i) const {
    return (static_cast<int>(threadIdx.x) + i * kThreads) >> log2;
  }
};

template <int kVectors>
using Values = float[kVectors][kVectorChannels];

// Adds up the partial sums of this thread's vectors, in the order of k; zeros where there is none.
template <int kVectors>
__device__ __forceinline__ void AddSums(const Layer& l, const Share& share,
                                        const Channels& channels, const float* sums,
                                        Values<kVectors>& values) {
  const int pitch = SumPitch(l.Tiles()), part = l.NSplit() * l.pairs * kTilePositions * pitch;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int position = channels.Position(i);
#pragma unroll
    for (float& v : values[i]) v = 0.0f;
    if (position >= share.rows * l.out_w) continue;
    const float* from = sums + position * pitch + channels.vector * kVectorChannels;
    float4 low[kWarps] = {}, high[kWarps] = {};  // all under way at once
#pragma unroll
    for (int k = 0; k < kWarps; ++k) {
      if (k >= l.Parts()) continue;
      low[k] = *reinterpret_cast<const float4*>(from + k * part);
      high[k] = *reinterpret_cast<const float4*>(from + k * part + 4);
    }
#pragma unroll
    for (int k = 0; k < kWarps; ++k) {
      const float4 &u = low[k], &v = high[k];
      values[i][0] += u.x, values[i][1] += u.y, values[i][2] += u.z, values[i][3] += u.w;
      values[i][4] += v.x, values[i][5] += v.y, values[i][6] += v.z, values[i][7] += v.w;
    }
  }
}

// Sums over the lanes whose channels are of this thread's norm group.
__device__ __forceinline__ float2 GroupSum(const Layer& l, const Channels& channels, float2 x) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    if (mask < channels.vectors && mask >= l.group_vectors) continue;
    x.x += __shfl_xor_sync(~0u, x.x, mask);
    x.y += __shfl_xor_sync(~0u, x.y, mask);
  }
  return x;
}

// Moments of this thread's norm group in its warp; all zero where it has no position.
template <int kVectors>
__device__ __forceinline__ Moment MomentOfWarp(const Layer& l, const Channels& channels,
                                               int positions, const Values<kVectors>& values) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first = lane & (channels.vectors - l.group_vectors);
  Gathered all = {__shfl_sync(~0u, values[0][0], first)};
  float2 sum = make_float2(0.0f, 0.0f);
  int lanes = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const bool here = channels.Position(i) < positions;
    lanes += __popc(__ballot_sync(~0u, here));
    if (!here) continue;
#pragma unroll
    for (const float v : values[i]) {
      const float difference = v - all.pilot;
      sum.x += difference, sum.y = __fmaf_rn(difference, difference, sum.y);
    }
  }
  sum = GroupSum(l, channels, sum);
  all.count = static_cast<float>((lanes >> channels.log2) * l.group_vectors * kVectorChannels);
  all.sum = sum.x, all.squares = sum.y;
  return all.All();
}

// Sends the moments of this CTA's groups to the CTAs with the other slices of them.
template <int kVectors>
__device__ __forceinline__ void SendMoments(const Layer& l, const Share& share,
                                            const Channels& channels,
                                            const Values<kVectors>& values, Exchange& exchange,
                                            int turn) {
  const Moment of_warp = MomentOfWarp(l, channels, share.rows * l.out_w, values);
  if (static_cast<int>(threadIdx.x) % 32 < channels.vectors)
    exchange.of_warps[threadIdx.x / 32][channels.vector] = of_warp;
  __syncthreads();
  const int slice = static_cast<int>(threadIdx.x) >> channels.log2;
  if (slice >= l.slices || (channels.vector & (l.group_vectors - 1)) != 0) return;
  Gathered all = {exchange.of_warps[0][channels.vector].mean};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) all.Add(exchange.of_warps[w][channels.vector]);
  const Moment moment = all.All();
  const int to = slice * l.parts + share.part;
  StoreInCtaAsync(InCta(SharedAddress(&exchange.moments[turn][share.slice][channels.vector]), to),
                  reinterpret_cast<const uint4&>(moment),
                  InCta(SharedAddress(&exchange.moments_here[turn]), to));
}

// Mean and 1 / standard deviation of this thread's group, from the moments of the slices.
__device__ __forceinline__ float2 CombineMoments(const Layer& l, const Channels& channels,
                                                 const Moment (&moments)[kMostCtas][kMostGroups]) {
  const int group = channels.vector & ~(l.group_vectors - 1);
  Gathered gathered = {moments[0][group].mean};
#pragma unroll 4
  for (int s = 0; s < l.slices; ++s) gathered.Add(moments[s][group]);
  const Moment all = gathered.All();
  return make_float2(all.mean, FastInverseRoot(__fdividef(all.squares, all.count) + kEpsilon));
}

// A vector normalised, with the residual if the layer adds it.
template <typename T>
__device__ __forceinline__ Pack<T, kVectorChannels> Finish(
    const Layer& l, const Channels& channels, const float (&values)[kVectorChannels],
    float2 moments, const Pack<T, kVectorChannels>& residual) {
  const float* scale = reinterpret_cast<const float*>(channels.scale);
  const float* shift = reinterpret_cast<const float*>(channels.shift);
  Pack<T, kVectorChannels> out;
#pragma unroll
  for (int c = 0; c < kVectorChannels; ++c) {
    float y = __fmaf_rn(values[c] - moments.x, scale[c] * moments.y, shift[c]);
    if (l.adds_residual) y += ToFloat(residual.v[c]);
    if (l.relu) y = fmaxf(y, 0.0f);
    out.v[c] = FromFloat<T>(y);
  }
  return out;
}

// Sends a vector to all CTAs whose input it is in the next layer.
__device__ __forceinline__ void SendVector(const Layer& next, const Exchange& exchange, int row,
                                           int column, int channel, const uint4& vector) {
  // slice s reads the rows from s * step - 1 on, as far as the last tap of its last row
  const int step = next.rows * next.stride;
  const int first = Over(row + next.stride - 2, next.step_inverse);
  const int last = min(next.slices - 1, Over(row + 1, next.step_inverse));
  const int pitch = RowPixels(next) * PixelBytes(next);
  int at = (row - first * step + 1) * pitch + (column + 1) * PixelBytes(next) + channel * 2;
  for (int s = first; s <= last; ++s, at -= step * pitch)
#pragma unroll 4
    for (int part = 0; part < next.parts; ++part) {
      const auto& there = exchange.in_cta[s * next.parts + part];
      StoreInCtaAsync(there.input + at, vector, there.map_here);
    }
}

}  // namespace mjp::encoder_kernel

#endif  // KERNELS_CUDA_ENCODER_KERNEL_EPILOGUE_CUH_
