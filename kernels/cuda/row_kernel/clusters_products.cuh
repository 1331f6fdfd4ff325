#ifndef KERNELS_CUDA_ROW_KERNEL_CLUSTERS_PRODUCTS_CUH_
#define KERNELS_CUDA_ROW_KERNEL_CLUSTERS_PRODUCTS_CUH_

#include <utility>

#include "kernels/cuda/row_kernel/clusters_exchange.cuh"

// The products of a layer across clusters: a CTA multiplies its slice of the in channels. Weights
// and addresses are in registers before the slice arrives.

namespace mjp::row_kernel {

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

// Adds up the chunks of a unit, of which the first are `ahead`, and sends the sums. The places of
// the last kAhead of them are not refilled.
template <Format F, int kTiles, int kChunks>
__device__ __forceinline__ void MultiplyUnit(WeightsAhead<kChunks>& weights, Ahead<kChunks>& ahead,
                                             NextInputs<kTiles> inputs, const uint2* steps,
                                             int chunks, uint32_t row, int pair_bytes,
                                             const SumsToOwner& put) {
  constexpr int kAhead = WeightsAhead<kChunks>::kAhead, kEach = kTogether<kTiles>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  TileSums<kTiles> sums;
  for (;;) {
#pragma unroll
    for (int place = 0; place < kAhead; place += kEach) {
      LoadedInputs<kTiles> loaded[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) loaded[i].Load(inputs.of[i], pair_bytes, lane);
      inputs = NextInputs<kTiles>(steps += kEach, row);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        if (i == 0 || chunks > i) sums.template Add<F>(ahead[place + i], loaded[i]);
      chunks -= kEach;
      if (chunks <= 0) return sums.PutTo(put);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        if (chunks > kAhead - kEach + i) weights.LoadFurther(ahead[place + i]);
    }
  }
}

// A layer's products by MMA warp `warp`. wait() returns when the input is there. Refilling the
// places of the last chunks, whose number is returned, is left to the caller.
template <Format F, int kTiles, int kChunks, typename Wait>
__device__ __forceinline__ int MultiplySlice(const Cta& cta, const Layer& s, const Sums& sums,
                                             WeightsAhead<kChunks>& weights, int warp,
                                             const Wait& wait) {
  const auto* table = reinterpret_cast<const uint2*>(cta.shared + cta.a.shared.steps);
  const uint32_t lane_row = LaneRow<kTiles>(s, cta.shared, static_cast<int>(threadIdx.x) % 32);
  Unit unit = s.FirstUnit(warp);
#pragma unroll 1
  for (bool waits = true;; waits = false) {
    const int chunks = s.Chunks(unit);
    const uint2* steps = table + s.ChunksAt(unit);
    const uint32_t row = lane_row + (unit.shortcut ? 0 : PhaseBytes(s, unit.tile));
    const bool has_tile = unit.tile < s.tiles;
    // zeros in a warp without a unit: otherwise registers would be kept from layer to layer
    Ahead<kChunks> ahead = {};
    if (has_tile) weights.LoadFirst(ahead);
    const SumsToOwner put(cta, s, sums, unit);
    NextInputs<kTiles> inputs(steps, row);
    inputs.Pin();
    if (waits) {
      wait();  // of all warps the same instruction
      if (!has_tile) return 0;
    }
    MultiplyUnit<F, kTiles>(weights, ahead, inputs, steps, chunks, row, 16 * s.row_bytes, put);
    unit = s.NextUnit(unit);
    if (unit.tile >= s.tiles) return chunks;
    weights.Refill(chunks);
  }
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_CLUSTERS_PRODUCTS_CUH_
