#ifndef KERNELS_CUDA_ROW_KERNEL_PRODUCTS_CUH_
#define KERNELS_CUDA_ROW_KERNEL_PRODUCTS_CUH_

#include "kernels/cuda/norm_conv/warp_mma.cuh"
#include "kernels/cuda/row_kernel/row_kernel.cuh"
#include "kernels/cuda/row_kernel/weight_pipeline.cuh"

// The products of a layer: each warp multiplies its steps of its tiles and leaves the partial sums
// in shared memory.

namespace mjp::row_kernel {

// The inputs of a chunk's steps: `packed` says where each stands from `row` on, 16 bytes each.
template <int kTiles>
__device__ __forceinline__ void LoadInputs(uint2 packed, uint32_t row, int pair_bytes, int lane,
                                           uint32_t (&b)[kChunkFragments][2 * kTiles]) {
  const uint32_t at[4] = {row + (packed.x & 0xffff) * 16, row + (packed.x >> 16) * 16,
                          row + (packed.y & 0xffff) * 16, row + (packed.y >> 16) * 16};
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
}

// Adds up `chunks` chunks of steps of one tile: weights of 16 out channels x inputs of kTiles x 8
// positions. What does not need the input is loaded before wait() returns. `steps`: the tile's part
// of the table; `row`: shared address of this lane's row of the input, and `pair_bytes` from there
// that of two tiles further; `sums`: where the tile's partial sums (channel, position) go.
template <Format F, int kTiles, int kChunks, typename Wait>
__device__ __forceinline__ void MultiplyTile(WeightPipeline<kChunks>& weights, const uint2* steps,
                                             int chunks, uint32_t row, int pair_bytes, float* sums,
                                             int lane, const Wait& wait) {
  // several sets: a product waits for the one before that has its accumulators
  constexpr int kSets = kTiles == 1 ? 4 : kTiles == 2 ? 2 : 1;
  constexpr int kAtOnce = kTiles == 1 ? 2 : 1;  // chunks in registers
  float acc[kSets][kTiles][4] = {};
#pragma unroll 1
  for (; chunks > 0; chunks -= kAtOnce, steps += kAtOnce) {
    uint2 packed[kAtOnce];
    uint32_t fragments[kAtOnce][kChunkFragments][4], b[kAtOnce][kChunkFragments][2 * kTiles];
#pragma unroll
    for (int chunk = 0; chunk < kAtOnce; ++chunk) packed[chunk] = steps[min(chunk, chunks - 1)];
    weights.Take(chunks, fragments);
    wait();
#pragma unroll
    for (int chunk = 0; chunk < kAtOnce; ++chunk)
      LoadInputs<kTiles>(packed[chunk], row, pair_bytes, lane, b[chunk]);
#pragma unroll
    for (int chunk = 0; chunk < kAtOnce; ++chunk) {
      if (chunk >= chunks) break;
#pragma unroll
      for (int i = 0; i < kChunkFragments; ++i)
#pragma unroll
        for (int j = 0; j < kTiles; ++j)
          MultiplyAccumulate<F>(acc[i % kSets][j], fragments[chunk][i], b[chunk][i][2 * j],
                                b[chunk][i][2 * j + 1]);
    }
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
  bool waits = true;
  const auto wait_once = [&] {
    if (waits) wait();
    waits = false;
  };
#pragma unroll 1
  for (int tile = warp >> s.k_log2; tile < s.tiles; tile += tiles_at_once) {
    const int to = (k * s.tiles + tile) * 16 * kTiles * kPositionTile;
    const uint32_t of_phase = row + (tile * s.phases >= s.tiles ? s.phase_bytes : 0);
    int chunks = s.chunks, at = s.chunks_at, sums = layout.sums;
#pragma unroll 1
    for (bool shortcut = false;; shortcut = true) {  // the convolution, then its shortcut
      MultiplyTile<F, kTiles>(weights, table + at + k * chunks, chunks, of_phase, 16 * s.row_bytes,
                              reinterpret_cast<float*>(shared + sums) + to, lane, wait_once);
      if (shortcut || s.shortcut_chunks == 0) break;
      chunks = s.shortcut_chunks, at = s.shortcut_chunks_at, sums = layout.shortcut_sums;
    }
  }
  wait_once();  // a warp without a tile
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_PRODUCTS_CUH_
