#ifndef KERNELS_CUDA_CONV_WGMMA_TILE_CUH_
#define KERNELS_CUDA_CONV_WGMMA_TILE_CUH_

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/conv/epilogue.cuh"
#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/ptx.cuh"

// What the convolutions by wgmma share: a block's threads, and the epilogue of a cluster's tile.

namespace mjp {

constexpr int kWgmmaConvThreads = 256;  // two warpgroups
constexpr int kWgmmaRowsPerPass =
    kWgmmaConvThreads / kStageVectors;  // that one round of copies fills
constexpr int kTileAlignment = 1024;    // of the swizzle
constexpr int kSumVector = 8;           // sums of a thread at a time in the epilogue

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

// The epilogue of this block's slice of the tile: bias, a transformer's terms, residual and ReLU,
// 16 bytes at a time.
template <bool kOfTransformer, typename T, int BM, int BN, int kPitch, int kMaxSplit>
__device__ __forceinline__ void RunWgmmaEpilogue(const WgmmaConvArgs& p, uint32_t sums, int n0,
                                                 int m0, int phase) {
  constexpr int kVectors = BN / kSumVector;
  const ConvShape& s = p.a.shape;
  const int slice = (BM + p.split_k - 1) / p.split_k, first = static_cast<int>(blockIdx.z) * slice;
  const int count = s.batch * s.out_h * s.out_w;
  for (int i = threadIdx.x; i < slice * kVectors; i += kWgmmaConvThreads) {
    const int row = first + i / kVectors, m = i % kVectors * kSumVector, n = n0 + row;
    if (row >= BM || n >= count) break;
    float sum[kSumVector];
    AddClusterSums<kMaxSplit>(sum, sums + (row * kPitch + m) * 4, p.split_k);
    const size_t out = (static_cast<size_t>(n) * s.phases + phase) * s.out_c + m0 + m;
    Pack<T, kSumVector> residual = {}, y;
    if (p.a.residual)
      residual =
          *reinterpret_cast<const Pack<T, kSumVector>*>(static_cast<const T*>(p.a.residual) + out);
#pragma unroll
    for (int e = 0; e < kSumVector; ++e) {
      float v = sum[e];
      if (p.a.bias) v += p.a.bias[m0 + m + e];
      if constexpr (kOfTransformer) v = AddBiasAndActivate(p.a, v, RowBias(p.a, n), m0 + m + e);
      if (p.a.residual) v += ToFloat(residual.v[e]);
      if (p.a.relu) v = fmaxf(v, 0.0f);
      y.v[e] = FromFloat<T>(v);
    }
    *reinterpret_cast<Pack<T, kSumVector>*>(static_cast<T*>(p.a.y) + out) = y;
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_WGMMA_TILE_CUH_
