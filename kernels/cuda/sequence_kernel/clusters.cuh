#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_CUH_

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/sequence_kernel/cta.cuh"
#include "kernels/shared/host_device.h"

// A sequence across eight clusters. A cluster has 64 of the width's columns: their heads, and their
// part of the MLP; each of its eight CTAs makes an eighth of every layer's output for them.

namespace mjp::sequence_kernel {

inline constexpr int kClusters = 8, kClusterCtas = 8;
inline constexpr int kWideWidth = kClusters * kCtaColumns;
inline constexpr int kVector = 8;           // 16-bit values of a lane's access
inline constexpr int kLaneK = 32;           // of k, which the four lanes of a row have together
static_assert(kWideWidth == 2 * kThreads);  // two columns of a token for each thread

// What a CTA makes of its columns goes to all CTAs of the cluster as one shard of `rows` rows, so
// that it travels in few packets: of q, k and v eight columns each, of the hidden layer 32.
inline constexpr int kQkvShardRow = 3 * kGroupOut * 2;  // bytes
inline constexpr int kHiddenShardRow = kHiddenColumns / kClusterCtas * 2;
// Rows of the context are so far apart that two of them stand in different banks.
inline constexpr int kWideContextPitch = kCtaColumns * 2 + 64;
inline constexpr int kMostLayers = 32;
inline constexpr int kMostOut = 4;  // tiles of 8 out channels whose sums the warps add up

// Offsets in shared memory, bytes.
struct ClustersLayout {
  int sums, qkv, context, hidden, turns, token, actions, blocks, barriers, end;
};
MJP_HOST_DEVICE constexpr ClustersLayout LayoutOfClusters(int rows) {
  ClustersLayout at = {};
  at.qkv = at.sums + kWarps * rows * kMostOut * kGroupOut * 4;
  at.context = at.qkv + kClusterCtas * rows * kQkvShardRow;
  at.hidden = at.context + rows * kWideContextPitch;
  at.turns = at.hidden + kClusterCtas * rows * kHiddenShardRow;
  at.token = at.turns + rows * kCtaColumns / 2 * 8;
  at.actions = at.token + kWideWidth * 4;
  at.blocks = at.actions + (3 * kMostActions + 2 * kWarps) * 4;
  at.barriers = at.blocks + kMostLayers * static_cast<int>(sizeof(BlockWeights));
  at.end = at.barriers + 2 * 8;
  return at;
}

// A CTA's place: its cluster has columns, it has a part of the out channels, and some CTAs have the
// residual stream of a token.
template <int kTiles>
struct Place {
  static constexpr int kRows = kTiles * kTokenTile;
  static constexpr int kQkvShard = kRows * kQkvShardRow, kHiddenShard = kRows * kHiddenShardRow;
  static constexpr int kCtasPerToken = kClusters * kClusterCtas / kRows;

  const Args& a;
  uint8_t* shared;
  ClustersLayout at;
  int row, cluster, rank;  // of the sequence; of this CTA's cluster; in the cluster
  int token;               // whose residual stream is here; -1: none
  int head;                // size
  int warp, lane;

  __device__ __forceinline__ Place(const Args& args, uint8_t* memory)
      : a(args),
        shared(memory),
        at(LayoutOfClusters(kRows)),
        row(static_cast<int>(blockIdx.x)),
        cluster(static_cast<int>(blockIdx.y)),
        rank(static_cast<int>(blockIdx.z)),
        token(-1),
        head(args.shape.HeadSize()),
        warp(threadIdx.x / 32),
        lane(threadIdx.x & 31) {
    const int cta = cluster * kClusterCtas + rank;
    if (cta % kCtasPerToken == 0 && cta / kCtasPerToken < args.shape.length)
      token = cta / kCtasPerToken;
  }

  __device__ __forceinline__ float* Floats(int offset) const {
    return reinterpret_cast<float*>(shared + offset);
  }
  // Of the token here: x of the chain, its noise, the network's output; and of each warp's
  // columns the mean, and the squares of what they are off it.
  __device__ __forceinline__ float* X() const { return Floats(at.actions); }
  __device__ __forceinline__ float* Noise() const { return X() + kMostActions; }
  __device__ __forceinline__ float* Output() const { return Noise() + kMostActions; }
  __device__ __forceinline__ float2* Moments() const {
    return reinterpret_cast<float2*>(Output() + kMostActions);
  }
  __device__ __forceinline__ BlockWeights* Blocks() const {
    return reinterpret_cast<BlockWeights*>(shared + at.blocks);
  }
  // Of the shards of q, k and v, and of the hidden layer's.
  __device__ __forceinline__ uint32_t QkvBarrier() const {
    return SharedAddress(shared + at.barriers);
  }
  __device__ __forceinline__ uint32_t HiddenBarrier() const { return QkvBarrier() + 8; }
  // Of all rows and tokens.
  __device__ __forceinline__ size_t TokenIndex() const {
    return static_cast<size_t>(row) * a.shape.length + token;
  }
  // Of row r (0 or 1) of a product's tile `m` in this lane.
  __device__ __forceinline__ int RowOf(int m, int r) const {
    return m * kTokenTile + (lane >> 2) + r * 8;
  }
};

// A lane's operands of mma.sync, straight from rows whose neighbours are k: of a row's 32 values of
// k lane q of its four has the neighbours from 8 q on, as two products' parts. Both sides count k
// in this order.
template <int kTiles, int kVectors>
using TokenVectors = uint4[kTiles][2][kVectors];
template <int kOut, int kVectors>
using WeightVectors = uint4[kOut][kVectors];

template <Format F, int kTiles, int kOut, int kVectors>
__device__ __forceinline__ void MultiplyVectors(float (&acc)[kTiles][kOut][4],
                                                const TokenVectors<kTiles, kVectors>& tokens,
                                                const WeightVectors<kOut, kVectors>& weights) {
#pragma unroll
  for (int j = 0; j < kVectors; ++j) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const uint4 &low = tokens[m][0][j], &high = tokens[m][1][j];
      const uint32_t first[4] = {low.x, high.x, low.y, high.y};
      const uint32_t second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
      for (int n = 0; n < kOut; ++n) {
        MultiplyAccumulate<F>(acc[m][n], first, weights[n][j].x, weights[n][j].y);
        MultiplyAccumulate<F>(acc[m][n], second, weights[n][j].z, weights[n][j].w);
      }
    }
  }
}

// Tokens of shared memory, of this lane's part of 32 kVectors of k: of row r those of vector j
// stand at `from` + r * pitch + j * step.
template <int kTiles, int kVectors>
__device__ __forceinline__ void LoadTokens(TokenVectors<kTiles, kVectors>& tokens,
                                           const Place<kTiles>& p, int from, int pitch, int step) {
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int j = 0; j < kVectors; ++j)
        tokens[m][r][j] = *reinterpret_cast<const uint4*>(p.shared + from + p.RowOf(m, r) * pitch +
                                                          j * step + (p.lane & 3) * kVector * 2);
}

// Weights of out channels row(n), of this lane's part of 32 kVectors of k from `k` on.
template <int kOut, int kVectors, typename Row>
__device__ __forceinline__ void LoadWeights(WeightVectors<kOut, kVectors>& weights,
                                            const void* layer, int pitch, int k, const Row& row) {
  const int part = k + static_cast<int>(threadIdx.x & 3) * kVector;
#pragma unroll
  for (int n = 0; n < kOut; ++n)
#pragma unroll
    for (int j = 0; j < kVectors; ++j)
      weights[n][j] = LoadNow16(static_cast<const uint16_t*>(layer) +
                                static_cast<size_t>(row(n)) * pitch + part + j * kLaneK);
}

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_CUH_
