#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_LAYERS_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_LAYERS_CUH_

#include "kernels/cuda/sequence_kernel/clusters_attend.cuh"
#include "kernels/cuda/sequence_kernel/clusters_exchange.cuh"
#include "kernels/cuda/transformer/token_activation.cuh"

// A CTA's part of each layer. Weights are asked for before the values that they multiply have
// arrived, and wait for them in registers.

namespace mjp::sequence_kernel {

inline constexpr int kSliceVectors = kWideWidth / kWarps / kLaneK;  // a warp's k of a whole token

// Steps of AddWarps' loop.
template <int kTiles, int kOut>
inline constexpr int kAddSteps = (kTiles * kOut * 2 + kWarps - 1) / kWarps;

// The warps' sums of their k slices, added in the order of the warps: take(tile of rows, tile of
// out channels, half, step of the loop, sum) with two neighbours of a lane. Whole warps call it.
template <int kTiles, int kOut, typename Take>
__device__ __forceinline__ void AddWarps(const Place<kTiles>& p,
                                         const float (&acc)[kTiles][kOut][4], const Take& take) {
  constexpr int kParts = kTiles * kOut * 2;  // of 32 lanes
  auto* sums = reinterpret_cast<float2*>(p.shared + p.at.sums) + p.lane;
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
#pragma unroll
    for (int n = 0; n < kOut; ++n)
#pragma unroll
      for (int r = 0; r < 2; ++r)
        sums[(p.warp * kParts + (m * kOut + n) * 2 + r) * 32] =
            make_float2(acc[m][n][2 * r], acc[m][n][2 * r + 1]);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kAddSteps<kTiles, kOut>; ++i) {
    const int part = i * kWarps + p.warp;
    if (part >= kParts) break;
    float2 sum = sums[part * 32];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) {
      const float2 next = sums[(w * kParts + part) * 32];
      sum.x += next.x, sum.y += next.y;
    }
    take(part / 2 / kOut, part / 2 % kOut, part % 2, i, sum);
  }
}
// Which out channels of q, k and v this thread multiplies, and whose biases it adds: the same in
// every block.
template <int kTiles>
struct QkvChannels {
  static constexpr int kOut = 3, kSteps = kAddSteps<kTiles, kOut>;
  int weights[kOut], biases[kSteps][2];

  __device__ __forceinline__ explicit QkvChannels(const Place<kTiles>& p) {
    const auto row = [&](int n, int c) {
      return QkvRow(p.a.shape, p.cluster, n * kCtaColumns + p.rank * kGroupOut + c);
    };
#pragma unroll
    for (int n = 0; n < kOut; ++n) weights[n] = row(n, p.lane >> 2);
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        biases[i][e] = row((i * kWarps + p.warp) / 2 % kOut, 2 * (p.lane & 3) + e);
  }
};

// This CTA's columns of q, k and v into the shared memory of the cluster, q and k turned: of each
// eight of the cluster's 64.
template <Format F, int kTiles>
__device__ __forceinline__ void MakeQkv(const Place<kTiles>& p, const BlockWeights& w,
                                        const QkvChannels<kTiles>& channels,
                                        Exchange<Place<kTiles>>& exchange) {
  using T = Storage<F>;
  constexpr int kOut = QkvChannels<kTiles>::kOut;
  WeightVectors<kOut, kSliceVectors> weights;
  LoadWeights(weights, w.qkv, kWideWidth, p.warp * kSliceVectors * kLaneK,
              [&](int n) { return channels.weights[n]; });
  float2 bias[kAddSteps<kTiles, kOut>];
#pragma unroll
  for (int i = 0; i < kAddSteps<kTiles, kOut>; ++i)
    bias[i] = make_float2(LoadNow(w.qkv_bias + channels.biases[i][0]),
                          LoadNow(w.qkv_bias + channels.biases[i][1]));
  TokenVectors<kTiles, kSliceVectors> tokens;
  ReceiveTokens(tokens, p, exchange);
  float acc[kTiles][kOut][4] = {};
  MultiplyVectors<F>(acc, tokens, weights);
  const auto* turns = reinterpret_cast<const float2*>(p.shared + p.at.turns);
  const int half = p.head / 2, in = p.rank * kGroupOut + 2 * (p.lane & 3);
  const int shard = p.at.qkv + p.rank * Place<kTiles>::kQkvShard;
  AddWarps(p, acc, [&](int m, int n, int r, int i, float2 sum) {
    const int token = p.RowOf(m, r);
    float x = sum.x + bias[i].x, y = sum.y + bias[i].y;
    if (n < 2) {
      const float2 turn = turns[token * half + (in / 2 & (half - 1))];
      const float turned = x * turn.x - y * turn.y;
      y = y * turn.x + x * turn.y;
      x = turned;
    }
    *reinterpret_cast<uint32_t*>(p.shared + shard + token * kQkvShardRow + n * kGroupOut * 2 +
                                 (p.lane & 3) * 4) = PackTwo(T{}, x, y);
  });
  SendShard(p, shard, Place<kTiles>::kQkvShard, p.QkvBarrier());
}

// This CTA's columns of the hidden layer into the shared memory of the cluster: 32 of its 256.
template <Format F, int kTiles>
__device__ __forceinline__ void MakeHidden(const Place<kTiles>& p, const BlockWeights& w,
                                           Exchange<Place<kTiles>>& exchange) {
  using T = Storage<F>;
  constexpr int kOut = kHiddenColumns / kClusterCtas / kGroupOut;
  const int in = p.rank * kOut * kGroupOut;
  const int first = p.cluster * kHiddenColumns + in;
  WeightVectors<kOut, kSliceVectors> weights;
  LoadWeights(weights, w.mlp1, kWideWidth, p.warp * kSliceVectors * kLaneK,
              [&](int n) { return first + n * kGroupOut + (p.lane >> 2); });
  float2 bias[kAddSteps<kTiles, kOut>];
#pragma unroll
  for (int i = 0; i < kAddSteps<kTiles, kOut>; ++i)
    bias[i] = LoadNow8(w.mlp1_bias + first + (i * kWarps + p.warp) / 2 % kOut * kGroupOut +
                       2 * (p.lane & 3));
  TokenVectors<kTiles, kSliceVectors> tokens;
  ReceiveTokens(tokens, p, exchange);
  float acc[kTiles][kOut][4] = {};
  MultiplyVectors<F>(acc, tokens, weights);
  const int shard = p.at.hidden + p.rank * Place<kTiles>::kHiddenShard;
  AddWarps(p, acc, [&](int m, int n, int r, int i, float2 sum) {
    const float x = GeluTanhFast(sum.x + bias[i].x);
    const float y = GeluTanhFast(sum.y + bias[i].y);
    *reinterpret_cast<uint32_t*>(p.shared + shard + p.RowOf(m, r) * kHiddenShardRow +
                                 n * kGroupOut * 2 + (p.lane & 3) * 4) = PackTwo(T{}, x, y);
  });
  SendShard(p, shard, Place<kTiles>::kHiddenShard, p.HiddenBarrier());
}

// The attention of the cluster's heads, and this CTA's 64 out channels of what it adds to the
// residual stream. Waits for the cluster's shards.
template <Format F, int kTiles>
__device__ __forceinline__ void AddAttention(const Place<kTiles>& p, const BlockWeights& w,
                                             Exchange<Place<kTiles>>& exchange) {
  constexpr int kVectors = kCtaColumns / kLaneK;
  const int column = p.rank * kCtaColumns + p.warp * kGroupOut;
  WeightVectors<1, kVectors> weights;
  LoadWeights(weights, w.out, kWideWidth, p.cluster * kCtaColumns,
              [&](int) { return column + (p.lane >> 2); });
  AwaitBarrier(p.QkvBarrier(), exchange.phase);
  Attend<F>(p);
  __syncthreads();
  TokenVectors<kTiles, kVectors> tokens;
  LoadTokens(tokens, p, p.at.context, kWideContextPitch, kLaneK * 2);
  float acc[kTiles][1][4] = {};
  MultiplyVectors<F>(acc, tokens, weights);
  SendSums(p, exchange, acc, column);
}

// This CTA's 64 out channels of what the hidden layer adds to the residual stream. A warp has two
// tiles of them over half of k, and ends with one of them over all. Waits for the cluster's
// shards.
template <Format F, int kTiles>
__device__ __forceinline__ void AddMlp(const Place<kTiles>& p, const BlockWeights& w,
                                       Exchange<Place<kTiles>>& exchange) {
  constexpr int kHalfK = kHiddenColumns / 2, kVectors = kHalfK / kLaneK;
  const int half = p.warp / 4, column = p.rank * kCtaColumns + p.warp % 4 * 2 * kGroupOut;
  WeightVectors<2, kVectors> weights;
  LoadWeights(weights, w.mlp2, 4 * kWideWidth, p.cluster * kHiddenColumns + half * kHalfK,
              [&](int n) { return column + n * kGroupOut + (p.lane >> 2); });
  AwaitBarrier(p.HiddenBarrier(), exchange.phase);
  exchange.phase ^= 1;
  TokenVectors<kTiles, kVectors> tokens;
  static_assert(kHiddenShardRow == kLaneK * 2);
  LoadTokens(tokens, p, p.at.hidden + half * kVectors * Place<kTiles>::kHiddenShard,
             kHiddenShardRow, Place<kTiles>::kHiddenShard);
  float acc[kTiles][2][4] = {};
  MultiplyVectors<F>(acc, tokens, weights);
  // element e of the tile that this warp keeps, or gives to the warp of the other half
  const auto of = [&](int m, bool second, int e) { return second ? acc[m][1][e] : acc[m][0][e]; };
  auto* swap = reinterpret_cast<float4*>(p.shared + p.at.sums) + p.lane;
  const bool keeps = half != 0;
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
    swap[(p.warp * kTiles + m) * 32] =
        make_float4(of(m, !keeps, 0), of(m, !keeps, 1), of(m, !keeps, 2), of(m, !keeps, 3));
  __syncthreads();
  float sums[kTiles][1][4];
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
    const float4 other = swap[((p.warp ^ 4) * kTiles + m) * 32];
    sums[m][0][0] = of(m, keeps, 0) + other.x, sums[m][0][1] = of(m, keeps, 1) + other.y;
    sums[m][0][2] = of(m, keeps, 2) + other.z, sums[m][0][3] = of(m, keeps, 3) + other.w;
  }
  SendSums(p, exchange, sums, column + half * kGroupOut);
}

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_LAYERS_CUH_
