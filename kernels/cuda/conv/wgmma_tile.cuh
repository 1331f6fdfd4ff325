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

// Eight sums of this block's tile, added over the cluster in the order of the ranks.
template <int kMaxSplit>
__device__ __forceinline__ void AddClusterSums(float (&sum)[kSumVector], uint32_t address,
                                               int split) {
  float4 part[kMaxSplit][2];
#pragma unroll
  for (int r = 0; r < kMaxSplit; ++r) {
    if (r >= split) break;
    part[r][0] = LoadFromBlock(address, r);
    part[r][1] = LoadFromBlock(address + 16, r);
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
    if constexpr (kOfTransformer) {
      const float* row_bias = RowBias(p.a, n);
      LoadVector(bias, row_bias == nullptr ? nullptr : row_bias + m);
    }
    if (p.a.residual)
      residual =
          *reinterpret_cast<const Pack<T, kSumVector>*>(static_cast<const T*>(p.a.residual) + out);
  }
};

// The epilogue of this block's slice of the tile: bias, a transformer's terms, residual and ReLU,
// 16 bytes at a time. What it loads for several rows is under way at once.
template <bool kOfTransformer, typename T, int kThreads, int BM, int BN, int kPitch, int kMaxSplit>
__device__ __forceinline__ void RunWgmmaEpilogue(const WgmmaConvArgs& p, uint32_t sums, int n0,
                                                 int m0, int phase) {
  constexpr int kVectors = BN / kSumVector, kRows = kThreads / kVectors;
  constexpr int kAtOnce = 2;
  static_assert(kThreads % kVectors == 0);
  const int slice = (BM + p.split_k - 1) / p.split_k, first = static_cast<int>(blockIdx.z) * slice;
  const int end = min(first + slice, BM), m = threadIdx.x % kVectors * kSumVector;
  float4 bias[2];
  LoadVector(bias, p.a.bias == nullptr ? nullptr : p.a.bias + m0 + m);
  for (int row0 = first + static_cast<int>(threadIdx.x) / kVectors; row0 < end;
       row0 += kAtOnce * kRows) {
    RowTerms<kOfTransformer, T> terms[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      terms[i].Load(p, n0 + row0 + i * kRows, m0 + m, phase, row0 + i * kRows < end);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (!terms[i].there) continue;
      float sum[kSumVector];
      AddClusterSums<kMaxSplit>(sum, sums + ((row0 + i * kRows) * kPitch + m) * 4, p.split_k);
      AddVector(sum, bias);
      if constexpr (kOfTransformer) {
        AddVector(sum, terms[i].bias);
        ActivateTokens<T>(p.a.activation, sum);
      }
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

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_WGMMA_TILE_CUH_
