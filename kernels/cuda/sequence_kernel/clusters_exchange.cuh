#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_EXCHANGE_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_EXCHANGE_CUH_

#include "kernels/cuda/megakernel/exchange/tagged_value.cuh"
#include "kernels/cuda/megakernel/exchange/whole_access.cuh"
#include "kernels/cuda/sequence_kernel/clusters.cuh"
#include "kernels/cuda/transformer/mma_attention_parts.cuh"

// What clusters exchange through L2. Every half of a block has one exchange: normalised tokens to
// all CTAs, then partial sums from all clusters to the CTA that has the token. A vector carries the
// epoch of its exchange in the lowest bit of its first value. One buffer is enough: a CTA that
// sends sums has read all tokens, and a token's next values follow all its sums.

namespace mjp::sequence_kernel {

using megakernel::SpinWatchdog;

// The mailboxes of a sequence, and how far the exchange is.
template <typename P>
struct Exchange {
  float* sums;      // (clusters, rows, width)
  uint8_t* tokens;  // (rows, width), 16 bits each
  uint32_t epoch;   // 1, 0, 1, ...: memory begins with zeros, and an even number of them ends so
  uint32_t phase;   // of the barriers of shards: 0, 1, 0, ..., one for each block
  SpinWatchdog watchdog;

  __device__ __forceinline__ explicit Exchange(const P& p)
      : sums(static_cast<float*>(p.a.mailboxes) + p.row * SequenceFloats()),
        tokens(reinterpret_cast<uint8_t*>(sums + kClusters * P::kRows * kWideWidth)),
        epoch(1),
        phase(0),
        watchdog(p.a.timed_out) {}
  __device__ __forceinline__ void Next() { epoch ^= 1; }

  MJP_HOST_DEVICE static constexpr size_t SequenceFloats() {
    return size_t{P::kRows} * kWideWidth * kClusters + size_t{P::kRows} * kWideWidth / 2;
  }
};

// 16 bytes of which each of the four lanes of a row has 4.
__device__ __forceinline__ uint4 GatherRow(uint32_t mine) {
  const int first = static_cast<int>(threadIdx.x & 28);
  return make_uint4(
      __shfl_sync(0xffffffffu, mine, first), __shfl_sync(0xffffffffu, mine, first + 1),
      __shfl_sync(0xffffffffu, mine, first + 2), __shfl_sync(0xffffffffu, mine, first + 3));
}

// This thread's two columns of the normalised token here, to all CTAs.
template <typename T, typename P>
__device__ __forceinline__ void SendToken(const P& p, Exchange<P>& exchange, float2 y) {
  uint4 eight = GatherRow(PackTwo(T{}, y.x, y.y));
  eight.x = (eight.x & ~1u) | exchange.epoch;
  if ((p.lane & 3) == 0)
    megakernel::Store16(
        exchange.tokens + (p.token * kWideWidth + static_cast<int>(threadIdx.x) * 2) * 2, eight);
}

// The tokens' k slice of this warp; zeros below the last one.
template <int kTiles, int kVectors>
__device__ __forceinline__ void ReceiveTokens(TokenVectors<kTiles, kVectors>& tokens,
                                              const Place<kTiles>& p,
                                              Exchange<Place<kTiles>>& exchange) {
  const uint32_t epoch = exchange.epoch;
  const auto at = [&](int m, int r, int j) {
    const int column = p.warp * kVectors * kLaneK + j * kLaneK + (p.lane & 3) * kVector;
    return exchange.tokens + (p.RowOf(m, r) * kWideWidth + column) * 2;
  };
  const auto each = [&](const auto& take) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int j = 0; j < kVectors; ++j) take(m, r, j);
  };
  each([&](int m, int r, int j) {
    tokens[m][r][j] = make_uint4(epoch, 0, 0, 0);
    if (p.RowOf(m, r) < p.a.shape.length) tokens[m][r][j] = megakernel::Load16(at(m, r, j));
  });
  for (int tries = 0;; ++tries) {
    uint32_t missing = 0;
    each([&](int m, int r, int j) { megakernel::AddMismatch(missing, tokens[m][r][j].x, epoch); });
    if ((missing & 1) == 0 || exchange.watchdog.TimedOut(tries)) break;
    each([&](int m, int r, int j) {
      if ((tokens[m][r][j].x ^ epoch) & 1) tokens[m][r][j] = megakernel::Load16(at(m, r, j));
    });
  }
  each([&](int m, int r, int j) { tokens[m][r][j].x &= ~1u; });
}

// This cluster's sums of out channels from `column` on, a tile of 8, to the CTAs that have the
// tokens.
template <int kTiles>
__device__ __forceinline__ void SendSums(const Place<kTiles>& p, Exchange<Place<kTiles>>& exchange,
                                         const float (&acc)[kTiles][1][4], int column) {
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = p.RowOf(m, r);
      if (row >= p.a.shape.length) continue;
      float* to = exchange.sums + (p.cluster * Place<kTiles>::kRows + row) * kWideWidth + column +
                  2 * (p.lane & 3);
      megakernel::Store8(to, make_uint2(megakernel::Tag(acc[m][0][2 * r], exchange.epoch),
                                        __float_as_uint(acc[m][0][2 * r + 1])));
    }
  }
}

// The sum over all clusters, in their order, of this thread's two columns of the token here.
template <typename P>
__device__ __forceinline__ float2 ReceiveSums(const P& p, Exchange<P>& exchange) {
  const auto at = [&](int cluster) {
    return exchange.sums + (cluster * P::kRows + p.token) * kWideWidth + threadIdx.x * 2;
  };
  uint2 part[kClusters];
#pragma unroll
  for (int i = 0; i < kClusters; ++i) part[i] = megakernel::Load8(at(i));
  for (int tries = 0;; ++tries) {
    uint32_t missing = 0;
#pragma unroll
    for (int i = 0; i < kClusters; ++i) megakernel::AddMismatch(missing, part[i].x, exchange.epoch);
    if ((missing & 1) == 0 || exchange.watchdog.TimedOut(tries)) break;
#pragma unroll
    for (int i = 0; i < kClusters; ++i)
      if ((part[i].x ^ exchange.epoch) & 1) part[i] = megakernel::Load8(at(i));
  }
  float2 sum = make_float2(0, 0);
#pragma unroll
  for (int i = 0; i < kClusters; ++i)
    sum.x += megakernel::Untag(part[i].x), sum.y += __uint_as_float(part[i].y);
  return sum;
}

// This CTA's shard at offset `at` to the same place in all CTAs of the cluster. Begins with a
// barrier of the CTA.
template <typename P>
__device__ __forceinline__ void SendShard(const P& p, int at, int bytes, uint32_t barrier) {
  FenceAsyncProxy();
  __syncthreads();
  if (threadIdx.x == 0) ExpectBytes(barrier, (kClusterCtas - 1) * bytes);
  if (threadIdx.x >= kClusterCtas || threadIdx.x == p.rank) return;
  const uint32_t from = SharedAddress(p.shared + at);
  CopyBulkInCluster(InCta(from, threadIdx.x), from, bytes, InCta(barrier, threadIdx.x));
}

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_EXCHANGE_CUH_
