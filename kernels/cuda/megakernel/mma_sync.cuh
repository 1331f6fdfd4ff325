#ifndef KERNELS_CUDA_MEGAKERNEL_MMA_SYNC_CUH_
#define KERNELS_CUDA_MEGAKERNEL_MMA_SYNC_CUH_

#include "kernels/cuda/megakernel/layer_descriptor.cuh"

// Products of up to 16 positions, warp by warp: a warpgroup's instruction takes about as long for
// 16 positions as for 64. Element n of the tiles, of 8, is (position, row), the row fastest.

namespace mjp {

// A warp's half of the channels of a filling of the input, [channels / 8][place][row] packs, of NT
// tiles.
template <int NT>
struct FewInput {
  uint32_t b[kWidePieces * NT / 2][4];

  // An instruction brings both eights of a piece, of its two tiles or of two pieces; eight lanes
  // have the addresses of one eight of a tile: a lane's, in bytes from where consecutive n begin.
  // `pitch`: bytes between eights of channels.
  __device__ __forceinline__ static int LaneAt(int pitch, int lane) {
    return (lane & 7) * kPackBytes + (lane >> 3 & 1) * pitch +
           (lane >> 4) * (NT == 1 ? 4 * pitch : 8 * kPackBytes);
  }
  // The same of a row, where a lane has four consecutive positions, two of either tile.
  __device__ __forceinline__ static int LaneAtRow(int pitch, int lane) {
    return ((lane & 6) * 2 + (lane & 1) + (lane >> 4) * 2) * kPackBytes + (lane >> 3 & 1) * pitch;
  }
  __device__ __forceinline__ void Load(uint32_t lane_at, int pitch) {
#pragma unroll
    for (int i = 0; i < kWidePieces * NT / 2; ++i)
      LoadMatrix4(b[i], lane_at + i * (8 / NT) * pitch);
  }
  template <Format F>
  __device__ __forceinline__ void Multiply(float (&acc)[NT][4], int piece,
                                           const uint32_t (&weight)[4]) const {
#pragma unroll
    for (int tile = 0; tile < NT; ++tile) MultiplyTile<F>(acc[tile], piece, tile, weight);
  }
  template <Format F>
  __device__ __forceinline__ void MultiplyTile(float (&acc)[4], int piece, int tile,
                                               const uint32_t (&weight)[4]) const {
    const int i = piece * NT + tile;
    MultiplyAccumulate<F>(acc, weight, b[i / 2][i % 2 * 2], b[i / 2][i % 2 * 2 + 1]);
  }
};

// The products of taps whose places follow each other from `input` on but for the second of three,
// which is at `even`, and of a 1x1 of the middle one's places, whose first fragment is at
// `beside_at`; these are this lane's addresses. An addition waits for the one before: there are
// four chains.
template <Format F, int kTaps, bool kBeside, int NT, int kWeights>
__device__ __forceinline__ void MultiplyTaps(uint32_t input, uint32_t even, int step, int pitch,
                                             const uint32_t (&weights)[kWeights][4],
                                             uint32_t beside_at, float (&main)[NT][4],
                                             float (&beside)[NT][4]) {
  constexpr int kSets = 4 / NT, kAhead = kTaps < 3 ? kTaps : 3;
  FewInput<NT> x[kTaps];
  const auto load = [&](int tap) {
    const int places = kTaps == 3 ? tap / 2 : tap;
    x[tap].Load(kTaps == 3 && tap == 1 ? even : input + places * step, pitch);
  };
#pragma unroll
  for (int tap = 0; tap < kAhead; ++tap) load(tap);
  float acc[kSets][NT][4] = {};
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
    for (int piece = 0; piece < kWidePieces; ++piece) {
      x[tap].template Multiply<F>(acc[piece % kSets], piece, weights[piece * kTaps + tap]);
      if (!kBeside || tap != kTaps / 2) continue;
      uint32_t weight[4];
      LoadFragment(weight, beside_at + piece * kFragmentBytes);
      x[tap].template Multiply<F>(beside, piece, weight);
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

// The products of five taps with one row of 16 positions, from this lane's address on. All taps
// multiply the same fragments, and their sums are added to other positions' instead: so fragments,
// which come no faster than they are multiplied, are loaded once. A lane has four consecutive
// positions, two of either tile, and exchanges with its neighbours what goes beyond them.
template <Format F>
__device__ __forceinline__ void MultiplyRow(uint32_t input, int pitch, int lane,
                                            const uint32_t (&weights)[kWidePieces * 5][4],
                                            float (&main)[2][4]) {
  FewInput<2> x;
  x.Load(input, pitch);
  // of each tap and tile; those of the middle tap go on from what moves by two, a tile
  float first[2][4] = {}, second[2][4] = {}, fourth[2][4] = {}, last[2][4] = {};
#pragma unroll
  for (int i = 0; i < kWidePieces; ++i) {
    x.Multiply<F>(first, i, weights[i * 5]);
    x.Multiply<F>(last, i, weights[i * 5 + 4]);
  }
#pragma unroll
  for (int i = 0; i < kWidePieces; ++i) {
    x.Multiply<F>(second, i, weights[i * 5 + 1]);
    x.Multiply<F>(fourth, i, weights[i * 5 + 3]);
  }
#pragma unroll
  for (int i = 0; i < kWidePieces; ++i) {
    x.MultiplyTile<F>(last[1], i, 0, weights[i * 5 + 2]);
    x.MultiplyTile<F>(first[0], i, 1, weights[i * 5 + 2]);
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

// Puts the sums of MultiplyRow where PutSums would put others.
__device__ __forceinline__ void PutRow(const float (&acc)[2][4], float* sums, int pitch, int m,
                                       int lane) {
  const int quad = lane & 3, turn = quad >> 1;  // half of the lanes begin with the second tile
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int q = 0; q < 4; ++q)
      sums[(quad * 4 + (j ^ turn) * 2 + (q & 1)) * pitch + m + (lane >> 2) + (q >> 1) * 8] =
          turn == 0 ? acc[j][q] : acc[1 - j][q];
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_MMA_SYNC_CUH_
