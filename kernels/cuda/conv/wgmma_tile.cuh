#ifndef KERNELS_CUDA_CONV_WGMMA_TILE_CUH_
#define KERNELS_CUDA_CONV_WGMMA_TILE_CUH_

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/conv/epilogue.cuh"
#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/ptx.cuh"

// What the convolutions by wgmma share: the epilogue of a cluster's tile.

namespace mjp {

constexpr int kWarpgroup = 128;       // threads
constexpr int kTileAlignment = 1024;  // of the swizzle
constexpr int kSumVector = 8;         // sums of a thread at a time in the epilogue

struct WgmmaConvArgs {
  ConvArgs a;
  int k_tiles;   // stages of the whole k
  int padded_m;  // rows of the packed weights in one phase
  int split_k;
};

// Puts a thread's sums of 64 rows to `sums`, in rows of `kPitch` floats; its first is in `row`.
template <int kPitch, int kSums>
__device__ __forceinline__ void StoreSums(float* sums, int row, const float (&acc)[kSums]) {
  const int column = 2 * (static_cast<int>(threadIdx.x) & 3);
#pragma unroll
  for (int q = 0; q < kSums; q += 2)
    *reinterpret_cast<float2*>(sums + (row + (q & 2) * 4) * kPitch + q / 4 * 8 + column) =
        make_float2(acc[q], acc[q + 1]);
}

// Where the sums of a tile are whose k the blocks of a cluster split.
struct SplitTile {
  int part = 0;        // which this block has, and which slice of the tile it ends
  int first_rank = 0;  // of the block with the first part; the others follow it
  bool whole = false;  // this block has all of k: its sums are read as its own memory
};

// Eight sums of this block's tile, added over the parts of k in their order.
template <int kMaxSplit>
__device__ __forceinline__ void AddClusterSums(float (&sum)[kSumVector], uint32_t address,
                                               int split, const SplitTile& tile) {
  if (tile.whole) {
    const auto* own = static_cast<const float4*>(__cvta_shared_to_generic(address));
    const float4 a = own[0], b = own[1];
    sum[0] = a.x, sum[1] = a.y, sum[2] = a.z, sum[3] = a.w;
    sum[4] = b.x, sum[5] = b.y, sum[6] = b.z, sum[7] = b.w;
    return;
  }
  float4 part[kMaxSplit][2];
#pragma unroll
  for (int r = 0; r < kMaxSplit; ++r) {
    if (r >= split) break;
    part[r][0] = LoadFromBlock(address, tile.first_rank + r);
    part[r][1] = LoadFromBlock(address + 16, tile.first_rank + r);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float4 v = part[0][half];
#pragma unroll
    for (int r = 1; r < kMaxSplit; ++r) {
      if (r >= split) break;
      v.x += part[r][half].x, v.y += part[r][half].y;
      v.z += part[r][half].z, v.w += part[r][half].w;
    }
    sum[half * 4] = v.x, sum[half * 4 + 1] = v.y, sum[half * 4 + 2] = v.z, sum[half * 4 + 3] = v.w;
  }
}

// Eight values that the epilogue adds to sums.
__device__ __forceinline__ void AddVector(float (&sum)[kSumVector], const float4 (&terms)[2]) {
  const float4 &a = terms[0], &b = terms[1];
  sum[0] += a.x, sum[1] += a.y, sum[2] += a.z, sum[3] += a.w;
  sum[4] += b.x, sum[5] += b.y, sum[6] += b.z, sum[7] += b.w;
}
// The next eight of `terms`, 16 bytes at a time; zeros where it is null.
__device__ __forceinline__ void LoadVector(float4 (&to)[2], const float* terms) {
  const auto* at = reinterpret_cast<const float4*>(terms);
#pragma unroll
  for (int i = 0; i < 2; ++i) to[i] = terms == nullptr ? make_float4(0, 0, 0, 0) : at[i];
}

// What a row of the output has besides its sums, on its way from L2.
template <bool kOfTransformer, typename T>
struct RowTerms {
  float4 bias[2];
  Pack<T, kSumVector> residual = {};
  size_t out;  // the vector's place
  bool there;

  __device__ __forceinline__ void Load(const WgmmaConvArgs& p, int n, int m, int phase,
                                       bool inside) {
    const ConvShape& s = p.a.shape;
    there = inside && n < s.batch * s.out_h * s.out_w;
    if (!there) return;
    out = (static_cast<size_t>(n) * s.phases + phase) * s.out_c + m;
    if (kOfTransformer && p.a.row_bias != nullptr) LoadVector(bias, RowBias(p.a, n) + m);
    if (p.a.residual)
      residual =
          *reinterpret_cast<const Pack<T, kSumVector>*>(static_cast<const T*>(p.a.residual) + out);
  }
};

// An epilogue's constants. kOfTransformer: it takes biases of positions and activations.
template <bool kIsOfTransformer, typename StorageType, int kThreadCount, int kTileRows,
          int kTileChannels, int kSumsPitch, int kMostSplit>
struct WgmmaEpilogue {
  static constexpr bool kOfTransformer = kIsOfTransformer;
  using T = StorageType;
  static constexpr int kThreads = kThreadCount, kRowsOfTile = kTileRows, kPitch = kSumsPitch;
  static constexpr int kMaxSplit = kMostSplit;
  static constexpr int kVectors = kTileChannels / kSumVector, kRows = kThreads / kVectors;
  static_assert(kThreads % kVectors == 0);
};

// This block's slice of the tile: bias, a transformer's terms, residual and ReLU, 16 bytes at a
// time. What it loads for kAtOnce rows is under way at once. activate(eight sums)
template <typename E, int kAtOnce, typename Activate>
__device__ __forceinline__ void EndRows(const WgmmaConvArgs& p, uint32_t sums, int n0, int m0,
                                        int phase, const SplitTile& tile,
                                        const Activate& activate) {
  using T = typename E::T;
  const int slice = (E::kRowsOfTile + p.split_k - 1) / p.split_k, first = tile.part * slice;
  const int end = min(first + slice, E::kRowsOfTile), m = threadIdx.x % E::kVectors * kSumVector;
  float4 bias[2];
  LoadVector(bias, p.a.bias == nullptr ? nullptr : p.a.bias + m0 + m);
#pragma unroll 1
  for (int row0 = first + static_cast<int>(threadIdx.x) / E::kVectors; row0 < end;
       row0 += kAtOnce * E::kRows) {
    RowTerms<E::kOfTransformer, T> terms[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      terms[i].Load(p, n0 + row0 + i * E::kRows, m0 + m, phase, row0 + i * E::kRows < end);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (!terms[i].there) continue;
      float sum[kSumVector];
      AddClusterSums<E::kMaxSplit>(sum, sums + ((row0 + i * E::kRows) * E::kPitch + m) * 4,
                                   p.split_k, tile);
      AddVector(sum, bias);
      if (E::kOfTransformer && p.a.row_bias != nullptr) AddVector(sum, terms[i].bias);
      activate(sum);
      Pack<T, kSumVector> y;
#pragma unroll
      for (int e = 0; e < kSumVector; ++e) {
        float v = sum[e];
        if (p.a.residual) v += ToFloat(terms[i].residual.v[e]);
        if (p.a.relu) v = fmaxf(v, 0.0f);
        y.v[e] = FromFloat<T>(v);
      }
      *reinterpret_cast<Pack<T, kSumVector>*>(static_cast<T*>(p.a.y) + terms[i].out) = y;
    }
  }
}

// The epilogue of this block.
template <typename E>
__device__ __forceinline__ void RunWgmmaEpilogue(const WgmmaConvArgs& p, uint32_t sums, int n0,
                                                 int m0, int phase, const SplitTile& tile) {
  constexpr int kAtOnce = 2;
  EndRows<E, kAtOnce>(p, sums, n0, m0, phase, tile, [&](float(&sum)[kSumVector]) {
    if constexpr (E::kOfTransformer)
      ForActivation(p.a.activation, [&]<TokenActivation kActivation>() {
        ActivateEach<kActivation, typename E::T>(sum);
      });
  });
}

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_WGMMA_TILE_CUH_
