#ifndef KERNELS_CUDA_TMA_LINEAR_NORM_EPILOGUE_CUH_
#define KERNELS_CUDA_TMA_LINEAR_NORM_EPILOGUE_CUH_

#include "kernels/cuda/conv/wgmma_tile.cuh"
#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/tma_linear/tma_linear.cuh"

// The epilogues of layers with a norm before or after them.

namespace mjp::tma_linear {

constexpr int kLanesOfMoments = kMomentChannels / kSumVector;  // neighbours that have a row's 32

// What these epilogues have in shared memory.
struct NormTerms {
  float2* norms;  // (kTokens): each token's mean and the reciprocal of its deviation
  float* stream;  // (kTokens, channels of the tile)
};

// Where a CTA's tile is, and which of its rows are its own to end.
struct TileRows {
  int token, channel;  // of the tile's first value
  int begin, end;      // rows
  SplitTile split;
};

// Means and scales of the tile's tokens, by two threads each. They add in an order that depends on
// the width alone, differences from the first 32 channels' mean. moments_of(row of the tile)
template <typename MomentsOf>
__device__ __forceinline__ void LoadRowNorms(const MomentsOf& moments_of, int width, float epsilon,
                                             float2* norms) {
  const int row = static_cast<int>(threadIdx.x) / 2, groups = width / kMomentChannels;
  const float2* const of_row = moments_of(row);
  const float first = of_row->x;
  float sum = 0, squares = 0, within = 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x) % 2; i < groups / 2; i += 2) {
    const float4 two = reinterpret_cast<const float4*>(of_row)[i];
    const float a = two.x - first, b = two.z - first;
    sum += a + b, squares += a * a + b * b, within += two.y + two.w;
  }
  const auto add = [](float v) { return v + __shfl_xor_sync(~0u, v, 1); };
  const float each = 1.0f / static_cast<float>(groups);
  const float difference = add(sum) * each;
  const float between = add(squares) * each - difference * difference;
  const float variance = add(within) * each / kMomentChannels + (between < 0 ? 0 : between);
  if (threadIdx.x % 2 == 0)
    norms[row] = make_float2(first + difference, rsqrtf(variance + epsilon));
}

// Calls end(row of the tile, token) for each row of this thread that is there.
template <typename E, typename End>
__device__ __forceinline__ void ForRows(const TileRows& rows, int tokens, const End& end) {
#pragma unroll 1
  for (int row = rows.begin + static_cast<int>(threadIdx.x) / E::kVectors; row < rows.end;
       row += E::kRows) {
    if (rows.token + row < tokens) end(row, rows.token + row);
  }
}

// The stream's row to which a token is added.
__device__ __forceinline__ int StreamRow(const ResidualStream& s, int token) {
  return s.x_rows > 0 ? token % s.x_rows : token;
}

// Copies the stream's tile, each thread what it will add itself.
template <typename E>
__device__ __forceinline__ void CopyStream(const ResidualStream& s, const ConvShape& shape,
                                           const TileRows& rows, float* to) {
  constexpr int kChannels = E::kVectors * kSumVector;
  const int m = static_cast<int>(threadIdx.x) % E::kVectors * kSumVector;
  ForRows<E>(rows, shape.batch, [&](int row, int token) {
    const float* from =
        s.x + static_cast<size_t>(StreamRow(s, token)) * shape.out_c + rows.channel + m;
    const uint32_t at = SharedAddress(to + row * kChannels + m);
    CopyAsync16(at, from, true);
    CopyAsync16(at + 16, from + 4, true);
  });
  CommitCopies();
}

// Eight values of each of this thread's channels, which no launch writes: they are on their way
// before the products.
struct ChannelTerms {
  float bias[kSumVector], scale[kSumVector];        // scale: weight_sums, or next_weight
  float weight[kSumVector], norm_bias[kSumVector];  // of the stream's norm

  __device__ __forceinline__ static void Load(float (&to)[kSumVector], const float* from) {
    const auto* const at = reinterpret_cast<const float4*>(from);
    const float4 a = at[0], b = at[1];
    to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
    to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
  }
  // Those from `channel` on.
  __device__ __forceinline__ void LoadOfInput(const ConvArgs& a, const InputNorm& norm,
                                              int channel) {
    Load(bias, a.bias + channel);
    Load(scale, norm.weight_sums + channel);
  }
  __device__ __forceinline__ void LoadOfStream(const ConvArgs& a, const ResidualStream& s,
                                               int channel) {
#pragma unroll
    for (float& b : bias) b = 0;
    if (a.bias != nullptr) Load(bias, a.bias + channel);
    Load(scale, s.next_weight + channel);
    if (s.moments == nullptr) return;
    Load(weight, s.weight + channel);
    Load(norm_bias, s.bias + channel);
  }
};

// y = act((sum - mean weight_sums) scale + bias + row_bias)
template <typename E, TokenActivation kActivation>
__device__ __forceinline__ void EndNormedRows(const WgmmaConvArgs& p, uint32_t sums,
                                              const TileRows& rows, const NormTerms& terms,
                                              const ChannelTerms& channels) {
  using T = typename E::T;
  const int m = static_cast<int>(threadIdx.x) % E::kVectors * kSumVector;
  ForRows<E>(rows, p.a.shape.batch, [&](int row, int token) {
    float4 of_position[2];
    const bool positions = p.a.row_bias != nullptr;
    if (positions) LoadVector(of_position, RowBias(p.a, token) + rows.channel + m);
    float sum[kSumVector];
    AddClusterSums<E::kMaxSplit>(sum, sums + (row * E::kPitch + m) * 4, p.split_k, rows.split);
    const float2 of_row = terms.norms[row];
#pragma unroll
    for (int e = 0; e < kSumVector; ++e)
      sum[e] = fmaf(fmaf(-of_row.x, channels.scale[e], sum[e]), of_row.y, channels.bias[e]);
    if (positions) AddVector(sum, of_position);
    ActivateEach<kActivation, T>(sum);
    Pack<T, kSumVector> y;
#pragma unroll
    for (int e = 0; e < kSumVector; ++e) y.v[e] = FromFloat<T>(sum[e]);
    *reinterpret_cast<Pack<T, kSumVector>*>(
        static_cast<T*>(p.a.y) + static_cast<size_t>(token) * p.a.shape.out_c + rows.channel + m) =
        y;
  });
}

// Mean of 32 channels and the sum of squared differences from it, by four neighbours: each of its
// own eight, which they join as Chan et al. (1979) have it.
__device__ __forceinline__ float2 MomentsOf(const float (&v)[kSumVector]) {
  const uint32_t lanes = 0xfu << (threadIdx.x & 28);
  const float sum = (v[0] + v[1]) + (v[2] + v[3]) + ((v[4] + v[5]) + (v[6] + v[7]));
  float mean = sum / kSumVector, squares = 0;
#pragma unroll
  for (int e = 0; e < kSumVector; ++e) squares += (v[e] - mean) * (v[e] - mean);
#pragma unroll
  for (int lane = 1; lane < kLanesOfMoments; lane *= 2) {
    const float half = 0.5f * (__shfl_xor_sync(lanes, mean, lane) - mean);
    squares += __shfl_xor_sync(lanes, squares, lane) + 2 * kSumVector * lane * half * half;
    mean += half;
  }
  return make_float2(mean, squares);
}

// v = stream + sum + bias; y = v next_weight
template <typename E>
__device__ __forceinline__ void EndStreamRows(const WgmmaConvArgs& p, const ResidualStream& s,
                                              uint32_t sums, const TileRows& rows,
                                              const NormTerms& terms,
                                              const ChannelTerms& channels) {
  using T = typename E::T;
  constexpr int kChannels = E::kVectors * kSumVector;
  const int m = static_cast<int>(threadIdx.x) % E::kVectors * kSumVector;
  WaitCopies<0>();
  ForRows<E>(rows, p.a.shape.batch, [&](int row, int token) {
    float sum[kSumVector], x[kSumVector];
    AddClusterSums<E::kMaxSplit>(sum, sums + (row * E::kPitch + m) * 4, p.split_k, rows.split);
    ChannelTerms::Load(x, terms.stream + row * kChannels + m);
    if (s.moments != nullptr) {
      const float2 of_row = terms.norms[row];
#pragma unroll
      for (int e = 0; e < kSumVector; ++e)
        x[e] = fmaf((x[e] - of_row.x) * of_row.y, channels.weight[e], channels.norm_bias[e]);
    }
    Pack<T, kSumVector> y;
#pragma unroll
    for (int e = 0; e < kSumVector; ++e) {
      sum[e] += channels.bias[e] + x[e];
      y.v[e] = FromFloat<T>(sum[e] * channels.scale[e]);
    }
    const size_t at = static_cast<size_t>(token) * p.a.shape.out_c + rows.channel + m;
    auto* const to = reinterpret_cast<float4*>(s.sum + at);
    to[0] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    to[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
    *reinterpret_cast<Pack<T, kSumVector>*>(static_cast<T*>(p.a.y) + at) = y;
    const float2 moments = MomentsOf(sum);
    if (threadIdx.x % kLanesOfMoments == 0) s.next_moments[at / kMomentChannels] = moments;
  });
}

}  // namespace mjp::tma_linear

#endif  // KERNELS_CUDA_TMA_LINEAR_NORM_EPILOGUE_CUH_
