#ifndef KERNELS_CUDA_ROW_KERNEL_CLUSTERS_PRODUCTS_CUH_
#define KERNELS_CUDA_ROW_KERNEL_CLUSTERS_PRODUCTS_CUH_

#include <utility>

#include "kernels/cuda/row_kernel/clusters_exchange.cuh"

// The products of a layer across clusters: a CTA multiplies its slice of the in channels. Weights
// and addresses are in registers before the slice arrives.

namespace mjp::row_kernel {

// Steps of one tile, of a convolution or its shortcut, that a warp multiplies: part `k` of them.
struct Unit {
  int tile, k;
  bool shortcut = false;

  __device__ __forceinline__ int Chunks(const Layer& s) const {
    return shortcut ? s.shortcut_chunks : s.chunks;
  }
  __device__ __forceinline__ int StepsAt(const Layer& s) const {
    return (shortcut ? s.shortcut_chunks_at : s.chunks_at) + k * Chunks(s);
  }
  // Of each tile the convolution, then its shortcut.
  __device__ __forceinline__ void Next(const Layer& s) {
    shortcut = !shortcut && s.shortcut_chunks > 0;
    if (!shortcut) tile += kWarps >> s.k_log2;
  }
};

// Chunks that are multiplied together: the inputs of all of them are on their way before the first
// product.
template <int kTiles>
inline constexpr int kTogether = kTiles <= 2 ? 2 : 1;

// Where the inputs of the next chunks stand; those beyond the unit's last one are not used.
template <int kTiles>
struct NextInputs {
  ChunkInputs of[kTogether<kTiles>];

  __device__ __forceinline__ NextInputs(const uint2* steps, uint32_t row)
      : NextInputs(steps, row, std::make_index_sequence<kTogether<kTiles>>()) {}
  __device__ __forceinline__ void Pin() {
#pragma unroll
    for (ChunkInputs& each : of) each.Pin();
  }

 private:
  template <size_t... kEach>
  __device__ __forceinline__ NextInputs(const uint2* steps, uint32_t row,
                                        std::index_sequence<kEach...>)
      : of{ChunkInputs(steps[kEach], row)...} {}
};

template <int kChunks>
using Ahead = typename WeightsAhead<kChunks>::Chunk[WeightsAhead<kChunks>::kAhead];

// Multiplies the chunks of a unit, of which the first are `ahead`.
template <Format F, int kTiles, int kChunks>
__device__ __forceinline__ void MultiplyUnit(WeightsAhead<kChunks>& weights, Ahead<kChunks>& ahead,
                                             NextInputs<kTiles> inputs, const uint2* steps,
                                             int chunks, uint32_t row, int pair_bytes,
                                             TileSums<kTiles>& sums) {
  constexpr int kAhead = WeightsAhead<kChunks>::kAhead, kEach = kTogether<kTiles>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (;;) {
#pragma unroll
    for (int place = 0; place < kAhead; place += kEach) {
      LoadedInputs<kTiles> loaded[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        if (i == 0 || chunks > i) loaded[i].Load(inputs.of[i], pair_bytes, lane);
      inputs = NextInputs<kTiles>(steps += kEach, row);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        if (i == 0 || chunks > i) sums.template Add<F>(ahead[place + i], loaded[i]);
      chunks -= kEach;
      if (chunks <= 0) return;
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        if (chunks > kAhead - kEach + i) weights.LoadFurther(ahead[place + i]);
    }
  }
}

// Adds up what the 2^kLog2 warps that share a tile have, in their order; sends the sum to the
// owner. `parts`: room for the sums of this CTA's warps. `again`: not the layer's first unit.
template <int kTiles, int kLog2>
__device__ __forceinline__ void SendShared(TileSums<kTiles>& sums, const Unit& unit, bool again,
                                           uint8_t* parts, const SumsToOwner& put) {
  const int warp = static_cast<int>(threadIdx.x) / 32 - kWarps;
  const auto part = [&](int k, int j) -> float4& {
    const int at = ((warp - unit.k + k) * kTiles + j) * kTileBytes;
    return *reinterpret_cast<float4*>(parts + at + threadIdx.x % 32 * 16);
  };
  const auto sync = [&] {
    asm volatile("bar.sync %0, %1;" ::"r"(kTileParts + (warp >> kLog2)), "n"(32 << kLog2)
                 : "memory");
  };
  if (again) sync();  // those of the unit before have been read
  if (unit.k > 0)
    sums.PutTo([&](int j, const float(&four)[4]) {
      part(unit.k, j) = make_float4(four[0], four[1], four[2], four[3]);
    });
  sync();
  if (unit.k > 0) return;
  sums.PutTo([&](int j, float(&four)[4]) {
#pragma unroll
    for (int k = 1; k < 1 << kLog2; ++k) {
      const float4 other = part(k, j);
      four[0] += other.x, four[1] += other.y, four[2] += other.z, four[3] += other.w;
    }
    put(j, four);
  });
}
template <int kTiles>
__device__ __forceinline__ void SendTile(TileSums<kTiles>& sums, const Layer& s, const Unit& unit,
                                         bool again, uint8_t* parts, const SumsToOwner& put) {
  static_assert(kMostTileWarpsLog2 == 2);
  if (s.k_log2 == 0) sums.PutTo(put);
  if (s.k_log2 == 1) SendShared<kTiles, 1>(sums, unit, again, parts, put);
  if (s.k_log2 == 2) SendShared<kTiles, 2>(sums, unit, again, parts, put);
}

// A layer's products by MMA warp `warp`. wait() returns when the input is there. Refilling the
// places of the last chunks, whose number is returned, is left to the caller.
template <Format F, int kTiles, int kChunks, typename Wait>
__device__ __forceinline__ int MultiplySlice(const Cta& cta, const Layer& s, const Sums& sums,
                                             WeightsAhead<kChunks>& weights, int warp,
                                             const Wait& wait) {
  const auto* table = reinterpret_cast<const uint2*>(cta.shared + cta.a.shared.steps);
  const uint32_t lane_row = LaneRow<kTiles>(s, cta.shared, static_cast<int>(threadIdx.x) % 32);
  Unit unit = {warp >> s.k_log2, warp & ((1 << s.k_log2) - 1)};
  uint8_t* parts = cta.shared + cta.a.shared.tile_parts;
#pragma unroll 1
  for (bool waits = true;; waits = false) {
    const int chunks = unit.Chunks(s);
    const uint2* steps = table + unit.StepsAt(s);
    const uint32_t row = lane_row + (unit.shortcut ? 0 : PhaseBytes(s, unit.tile));
    Ahead<kChunks> ahead;
    weights.LoadFirst(ahead);
    const SumsToOwner put(cta, s, sums, unit.tile, unit.shortcut);
    NextInputs<kTiles> inputs(steps, row);
    inputs.Pin();
    if (waits) {
      wait();  // of all warps the same instruction
      if (unit.tile >= s.tiles) return 0;
    }
    TileSums<kTiles> products;
    MultiplyUnit<F, kTiles>(weights, ahead, inputs, steps, chunks, row, 16 * s.row_bytes, products);
    SendTile(products, s, unit, !waits, parts, put);
    unit.Next(s);
    if (unit.tile >= s.tiles) return chunks;
    weights.Refill(chunks);
  }
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_CLUSTERS_PRODUCTS_CUH_
