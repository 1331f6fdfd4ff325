#ifndef KERNELS_CUDA_ROW_KERNEL_PRODUCTS_CUH_
#define KERNELS_CUDA_ROW_KERNEL_PRODUCTS_CUH_

#include "kernels/cuda/norm_conv/warp_mma.cuh"
#include "kernels/cuda/primitives/registers.cuh"
#include "kernels/cuda/row_kernel/row_kernel.cuh"
#include "kernels/cuda/row_kernel/weight_pipeline.cuh"

// The products of a layer: each warp multiplies its steps of its tiles and leaves the partial sums
// in shared memory.

namespace mjp::row_kernel {

// Where the inputs of a chunk's steps stand: shared addresses of this lane's rows.
struct ChunkInputs {
  uint32_t at[kChunkFragments];

  // `packed`: from the table of steps; `row`: this lane's row of the input.
  __device__ __forceinline__ ChunkInputs(uint2 packed, uint32_t row)
      : at{row + (packed.x & 0xffff) * 16, row + (packed.x >> 16) * 16,
           row + (packed.y & 0xffff) * 16, row + (packed.y >> 16) * 16} {}
  // Has them computed here, and not where they are used.
  __device__ __forceinline__ void Pin() {
#pragma unroll
    for (uint32_t& address : at) PinRegister(address);
  }
};

// A chunk's inputs, kTiles x 8 positions for each step, as mma takes them. From a row of the inputs
// `pair_bytes` to that of two tiles further.
template <int kTiles>
struct LoadedInputs {
  uint32_t b[kChunkFragments][2 * kTiles];

  __device__ __forceinline__ void Load(const ChunkInputs& inputs, int pair_bytes, int lane) {
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i) {
      uint32_t both[4];
      if constexpr (kTiles == 1) {  // one load for two steps, half of the lanes each
        if (i % 2 == 1) continue;
        LoadMatrix4(both, lane < 16 ? inputs.at[i] : inputs.at[i + 1]);
        b[i][0] = both[0], b[i][1] = both[1], b[i + 1][0] = both[2], b[i + 1][1] = both[3];
      } else {
#pragma unroll
        for (int j = 0; j < kTiles; j += 2) {
          LoadMatrix4(both, inputs.at[i] + j / 2 * pair_bytes);
          b[i][2 * j] = both[0], b[i][2 * j + 1] = both[1];
          b[i][2 * j + 2] = both[2], b[i][2 * j + 3] = both[3];
        }
      }
    }
  }
};

// Several sets of accumulators: a product waits for the one before that has its accumulators.
template <int kTiles>
struct TileSums {
  static constexpr int kSets = kTiles == 1 ? 4 : kTiles == 2 ? 2 : 1;
  float acc[kSets][kTiles][4] = {};

  // Adds a chunk of steps: weights of 16 out channels x inputs.
  template <Format F>
  __device__ __forceinline__ void Add(const uint32_t (&weights)[kChunkFragments][4],
                                      const LoadedInputs<kTiles>& inputs) {
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i)
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
        MultiplyAccumulate<F>(acc[i % kSets][j], weights[i], inputs.b[i][2 * j],
                              inputs.b[i][2 * j + 1]);
  }

  // put(j, sums) takes those of position tile j as mma leaves them.
  template <typename Put>
  __device__ __forceinline__ void PutTo(const Put& put) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int set = 1; set < kSets; ++set)
#pragma unroll
        for (int q = 0; q < 4; ++q) acc[0][j][q] += acc[set][j][q];
      put(j, acc[0][j]);
    }
  }
};

// Adds up `chunks` chunks of steps of one tile. `inputs`: of the first chunk, whose place in the
// table of steps is `steps`. `row`: shared address of this lane's row of the input. The last
// chunk's weights stay.
template <Format F, int kTiles, int kChunks, typename Put>
__device__ __forceinline__ void MultiplyTile(WeightPipeline<kChunks>& weights, ChunkInputs inputs,
                                             const uint2* steps, int chunks, uint32_t row,
                                             int pair_bytes, int lane, const Put& put) {
  TileSums<kTiles> sums;
#pragma unroll 1
  for (;;) {
    LoadedInputs<kTiles> loaded;
    loaded.Load(inputs, pair_bytes, lane);
    sums.template Add<F>(weights.fragment, loaded);
    if (--chunks == 0) break;
    inputs = ChunkInputs(*++steps, row);
    weights.Advance();
  }
  sums.PutTo(put);
}

// Puts the sums of a tile where they stand by (channel, position), from `sums` on.
template <int kTiles>
struct SumsByPosition {
  float* to;

  __device__ __forceinline__ SumsByPosition(float* sums, int lane)
      : to(sums + (lane / 4) * kTiles * kPositionTile + lane % 4 * 2) {}
  __device__ __forceinline__ void operator()(int j, const float (&two)[4]) const {
    float* at = to + j * kPositionTile;
    *reinterpret_cast<float2*>(at) = make_float2(two[0], two[1]);
    *reinterpret_cast<float2*>(at + 8 * kTiles * kPositionTile) = make_float2(two[2], two[3]);
  }
};

// Shared address of this lane's row of the 8x8 matrices, but for what is added to it: two position
// tiles, or two steps of one.
template <int kTiles>
__device__ __forceinline__ uint32_t LaneRow(const Layer& s, const uint8_t* shared, int lane) {
  const int position = min(lane % 8 + (kTiles > 1 ? lane / 16 * 8 : 0), s.length - 1);
  return SharedAddress(shared) + position * s.row_bytes + lane / 8 % 2 * 16;
}
// What a tile of the second phase adds.
__device__ __forceinline__ int PhaseBytes(const Layer& s, int tile) {
  return tile * s.phases >= s.tiles ? s.phase_bytes : 0;
}

// A layer's products by MMA warp `warp`; false if it has none. wait() returns when the input is
// there. The last chunk's weights stay: going on from them is left to the caller.
template <Format F, int kTiles, int kChunks, typename Wait>
__device__ __forceinline__ bool MultiplyTiles(WeightPipeline<kChunks>& weights, const Layer& s,
                                              const SharedLayout& layout, uint8_t* shared, int warp,
                                              const Wait& wait) {
  const int lane = threadIdx.x % 32;
  const int k = warp & ((1 << s.k_log2) - 1), tiles_at_once = kWarps >> s.k_log2;
  const auto* table = reinterpret_cast<const uint2*>(shared + layout.steps);
  const uint32_t row = LaneRow<kTiles>(s, shared, lane);
  const auto row_of = [&](int tile) { return row + PhaseBytes(s, tile); };
  int tile = warp >> s.k_log2;
  const uint2* steps = table + s.chunks_at + k * s.chunks;
  ChunkInputs inputs(*steps, row_of(tile));
  inputs.Pin();
  wait();
  if (tile >= s.tiles) return false;
#pragma unroll 1
  for (bool shortcut = false;;) {  // of each tile the convolution, then its shortcut
    float* sums =
        reinterpret_cast<float*>(shared + (shortcut ? layout.shortcut_sums : layout.sums)) +
        (k * s.tiles + tile) * 16 * kTiles * kPositionTile;
    MultiplyTile<F, kTiles>(weights, inputs, steps, shortcut ? s.shortcut_chunks : s.chunks,
                            row_of(tile), 16 * s.row_bytes, lane,
                            SumsByPosition<kTiles>(sums, lane));
    shortcut = !shortcut && s.shortcut_chunks > 0;
    if (!shortcut) tile += tiles_at_once;
    if (tile >= s.tiles) return true;
    steps = table +
            (shortcut ? s.shortcut_chunks_at + k * s.shortcut_chunks : s.chunks_at + k * s.chunks);
    inputs = ChunkInputs(*steps, row_of(tile));
    weights.Advance();
  }
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_PRODUCTS_CUH_
