#ifndef KERNELS_CUDA_MEGAKERNEL_MMA_SYNC_CUH_
#define KERNELS_CUDA_MEGAKERNEL_MMA_SYNC_CUH_

#include "kernels/cuda/megakernel/layer_descriptor.cuh"

// GEMM tiles of up to 16 columns, by mma.sync: wgmma takes about as long for 16 columns as for 64.
// Column n of the tiles, of 8, is (position, row), the row fastest.

namespace mjp::megakernel {

// A warp's half of a K block of the input, [channels / 8][position][row] packs, of NT tiles.
template <int NT>
struct InputFragments {
  uint32_t b[kKSteps * NT / 2][4];

  // Where this lane's ldmatrix address is, in bytes from the first of consecutive columns. An
  // ldmatrix.x4 loads both channel blocks of a k step, of two tiles or of two k steps; eight lanes
  // have the addresses of one block of a tile. `pitch`: bytes between channel blocks.
  __device__ __forceinline__ static int LaneAt(int pitch, int lane) {
    return (lane & 7) * kPackBytes + (lane >> 3 & 1) * pitch +
           (lane >> 4) * (NT == 1 ? 4 * pitch : 8 * kPackBytes);
  }
  // The same of one row, where a lane has four consecutive positions, two of either tile.
  __device__ __forceinline__ static int LaneAtRow(int pitch, int lane) {
    return ((lane & 6) * 2 + (lane & 1) + (lane >> 4) * 2) * kPackBytes + (lane >> 3 & 1) * pitch;
  }
  __device__ __forceinline__ void Load(uint32_t lane_at, int pitch) {
#pragma unroll
    for (int i = 0; i < kKSteps * NT / 2; ++i) LoadMatrix4(b[i], lane_at + i * (8 / NT) * pitch);
  }
  template <Format F>
  __device__ __forceinline__ void Mma(float (&acc)[NT][4], int k_step,
                                      const uint32_t (&weight)[4]) const {
#pragma unroll
    for (int tile = 0; tile < NT; ++tile) MmaTile<F>(acc[tile], k_step, tile, weight);
  }
  template <Format F>
  __device__ __forceinline__ void MmaTile(float (&acc)[4], int k_step, int tile,
                                          const uint32_t (&weight)[4]) const {
    const int i = k_step * NT + tile;
    MultiplyAccumulate<F>(acc, weight, b[i / 2][i % 2 * 2], b[i / 2][i % 2 * 2 + 1]);
  }
};

// A convolution's taps, each one position on from `input`, but for the second of three, which is at
// `even`; and with kShortcut the 1x1 of the middle tap's positions, whose first weight fragment is
// at `shortcut_at`. All are this lane's addresses. An mma waits for the one before that has its
// accumulators, so there are four sets.
template <Format F, int kTaps, bool kShortcut, int NT, int kWeights>
__device__ __forceinline__ void MmaTaps(uint32_t input, uint32_t even, int position_bytes,
                                        int pitch, const uint32_t (&weights)[kWeights][4],
                                        uint32_t shortcut_at, float (&main)[NT][4],
                                        float (&shortcut)[NT][4]) {
  constexpr int kSets = 4 / NT, kAhead = kTaps < 3 ? kTaps : 3;
  InputFragments<NT> x[kTaps];
  const auto load = [&](int tap) {
    const int position = kTaps == 3 ? tap / 2 : tap;
    x[tap].Load(kTaps == 3 && tap == 1 ? even : input + position * position_bytes, pitch);
  };
#pragma unroll
  for (int tap = 0; tap < kAhead; ++tap) load(tap);
  float acc[kSets][NT][4] = {};
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
    for (int k_step = 0; k_step < kKSteps; ++k_step) {
      x[tap].template Mma<F>(acc[k_step % kSets], k_step, weights[k_step * kTaps + tap]);
      if (!kShortcut || tap != kTaps / 2) continue;
      uint32_t weight[4];
      LoadFragment(weight, shortcut_at + k_step * kFragmentBytes);
      x[tap].template Mma<F>(shortcut, k_step, weight);
    }
    if (tap + kAhead < kTaps) load(tap + kAhead);
  }
#pragma unroll
  for (int i = 0; i < NT * 4; ++i) {
    float sum = acc[0][i / 4][i % 4];
#pragma unroll
    for (int set = 1; set < kSets; ++set) sum += acc[set][i / 4][i % 4];
    main[i / 4][i % 4] = sum;
  }
}

// A convolution of five taps over one row of 16 positions, from this lane's address on, by shifted
// accumulation: all taps multiply the same input fragments, and their products are added into other
// positions instead. So fragments are loaded once, which takes as long as their mma. A lane has
// four consecutive positions, two of either tile, and exchanges with its neighbours what goes
// beyond.
template <Format F>
__device__ __forceinline__ void MmaShiftAccumulate(uint32_t input, int pitch, int lane,
                                                   const uint32_t (&weights)[kKSteps * 5][4],
                                                   float (&main)[2][4]) {
  InputFragments<2> x;
  x.Load(input, pitch);
  // of each tap and tile; the middle tap goes on from those that are shifted by two, a tile
  float first[2][4] = {}, second[2][4] = {}, fourth[2][4] = {}, last[2][4] = {};
#pragma unroll
  for (int i = 0; i < kKSteps; ++i) {
    x.Mma<F>(first, i, weights[i * 5]);
    x.Mma<F>(last, i, weights[i * 5 + 4]);
  }
#pragma unroll
  for (int i = 0; i < kKSteps; ++i) {
    x.Mma<F>(second, i, weights[i * 5 + 1]);
    x.Mma<F>(fourth, i, weights[i * 5 + 3]);
  }
#pragma unroll
  for (int i = 0; i < kKSteps; ++i) {
    x.MmaTile<F>(last[1], i, 0, weights[i * 5 + 2]);
    x.MmaTile<F>(first[0], i, 1, weights[i * 5 + 2]);
  }
  const bool begins = (lane & 3) == 0, ends = (lane & 3) == 3;
#pragma unroll
  for (int q = 0; q < 4; q += 2) {
    const auto up = [&](float sum) {
      sum = __shfl_up_sync(0xffffffffu, sum, 1);
      return begins ? 0.0f : sum;
    };
    const auto down = [&](float sum) {
      sum = __shfl_down_sync(0xffffffffu, sum, 1);
      return ends ? 0.0f : sum;
    };
    main[0][q] = up(first[1][q] + second[1][q + 1]) + fourth[0][q + 1] + last[1][q];
    main[0][q + 1] = up(first[1][q + 1]) + (second[0][q] + fourth[1][q]) + last[1][q + 1];
    main[1][q] = down(last[0][q]) + (second[0][q + 1] + fourth[1][q + 1]) + first[0][q];
    main[1][q + 1] = down(last[0][q + 1] + fourth[0][q]) + second[1][q] + first[0][q + 1];
  }
}

// Puts the accumulators of MmaShiftAccumulate where PutAccumulators would put others.
__device__ __forceinline__ void PutShiftAccumulated(const float (&acc)[2][4], float* sums,
                                                    int pitch, int m, int lane) {
  const int quad = lane & 3, swap = quad >> 1;  // half of the lanes begin with the second tile
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int q = 0; q < 4; ++q)
      sums[(quad * 4 + (j ^ swap) * 2 + (q & 1)) * pitch + m + (lane >> 2) + (q >> 1) * 8] =
          swap == 0 ? acc[j][q] : acc[1 - j][q];
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_MMA_SYNC_CUH_
