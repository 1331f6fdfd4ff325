#ifndef KERNELS_CUDA_ROW_KERNEL_PRODUCTS_CUH_
#define KERNELS_CUDA_ROW_KERNEL_PRODUCTS_CUH_

#include "kernels/cuda/norm_conv/warp_mma.cuh"
#include "kernels/cuda/row_kernel/row_kernel.cuh"
#include "kernels/cuda/row_kernel/weight_pipeline.cuh"

// The products of a layer: each warp multiplies its steps of its tiles and leaves the partial sums
// in shared memory.

namespace mjp::row_kernel {

// Adds up `chunks` chunks of steps of one tile: weights of 16 out channels x inputs of kTiles x 8
// positions. `first`: of the table of steps, which `steps` goes on with. `row`: shared address of
// this lane's row of the input, and `pair_bytes` from there that of two tiles further; `steps`
// (shared): where each step's input stands from there, 16 bytes each; `sums`: where the tile's
// partial sums (channel, position) go.
template <Format F, int kTiles, int kChunks>
__device__ __forceinline__ void MultiplyTile(WeightPipeline<kChunks>& weights, uint2 packed,
                                             const uint2* steps, int chunks, uint32_t row,
                                             int pair_bytes, float* sums, int lane) {
  // several sets: a product waits for the one before that has its accumulators
  constexpr int kSets = kTiles == 1 ? 4 : kTiles == 2 ? 2 : 1;
  float acc[kSets][kTiles][4] = {};
#pragma unroll 1
  for (; chunks > 0; --chunks) {
    const uint32_t at[4] = {row + (packed.x & 0xffff) * 16, row + (packed.x >> 16) * 16,
                            row + (packed.y & 0xffff) * 16, row + (packed.y >> 16) * 16};
    uint32_t b[kChunkFragments][2 * kTiles];
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i) {
      uint32_t both[4];
      if constexpr (kTiles == 1) {  // one load for two steps, half of the lanes each
        if (i % 2 == 1) continue;
        LoadMatrix4(both, lane < 16 ? at[i] : at[i + 1]);
        b[i][0] = both[0], b[i][1] = both[1], b[i + 1][0] = both[2], b[i + 1][1] = both[3];
      } else {
#pragma unroll
        for (int j = 0; j < kTiles; j += 2) {
          LoadMatrix4(both, at[i] + j / 2 * pair_bytes);
          b[i][2 * j] = both[0], b[i][2 * j + 1] = both[1];
          b[i][2 * j + 2] = both[2], b[i][2 * j + 3] = both[3];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i)
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
        MultiplyAccumulate<F>(acc[i % kSets][j], weights.fragment[i], b[i][2 * j], b[i][2 * j + 1]);
    packed = *++steps;  // behind the last one stands something too
    weights.Advance();
  }
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
#pragma unroll
    for (int set = 1; set < kSets; ++set)
#pragma unroll
      for (int q = 0; q < 4; ++q) acc[0][j][q] += acc[set][j][q];
    float* to = sums + (lane / 4) * kTiles * kPositionTile + j * kPositionTile + lane % 4 * 2;
    *reinterpret_cast<float2*>(to) = make_float2(acc[0][j][0], acc[0][j][1]);
    *reinterpret_cast<float2*>(to + 8 * kTiles * kPositionTile) =
        make_float2(acc[0][j][2], acc[0][j][3]);
  }
}

// A layer's products by MMA warp `warp`. wait() returns when the input is there.
template <Format F, int kTiles, int kChunks, typename Wait>
__device__ __forceinline__ void MultiplyTiles(WeightPipeline<kChunks>& weights, const Layer& s,
                                              const SharedLayout& layout, uint8_t* shared, int warp,
                                              const Wait& wait) {
  const int lane = threadIdx.x % 32;
  const int k = warp & ((1 << s.k_log2) - 1), tiles_at_once = kWarps >> s.k_log2;
  const auto* table = reinterpret_cast<const uint2*>(shared + layout.steps);
  // rows of the 8x8 matrices: two position tiles, or two steps of one
  const int position = min(lane % 8 + (kTiles > 1 ? lane / 16 * 8 : 0), s.length - 1);
  const uint32_t row = SharedAddress(shared) + position * s.row_bytes + lane / 8 % 2 * 16;
  int tile = warp >> s.k_log2;
  const uint2* steps = table + s.chunks_at + k * s.chunks;
  uint2 packed = *steps;
  wait();
#pragma unroll 1
  for (; tile < s.tiles; tile += tiles_at_once) {
    const int to = (k * s.tiles + tile) * 16 * kTiles * kPositionTile;
    const uint32_t of_phase = row + (tile * s.phases >= s.tiles ? s.phase_bytes : 0);
    int chunks = s.chunks, sums = layout.sums;
#pragma unroll 1
    for (bool shortcut = false;; shortcut = true) {  // the convolution, then its shortcut
      MultiplyTile<F, kTiles>(weights, packed, steps, chunks, of_phase, 16 * s.row_bytes,
                              reinterpret_cast<float*>(shared + sums) + to, lane);
      if (shortcut || s.shortcut_chunks == 0) break;
      chunks = s.shortcut_chunks, sums = layout.shortcut_sums;
      steps = table + s.shortcut_chunks_at + k * chunks;
      packed = *steps;
    }
    steps = table + s.chunks_at + k * s.chunks;
    packed = *steps;
  }
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_PRODUCTS_CUH_
