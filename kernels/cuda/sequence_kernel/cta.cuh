#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_CTA_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_CTA_CUH_

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/sequence_kernel/sequence_kernel.cuh"
#include "kernels/cuda/sequence_kernel/weight_pipeline.cuh"
#include "kernels/shared/host_device.h"

// What stands where in a CTA's shared memory, and which part of the sequence is its own.

namespace mjp::sequence_kernel {

inline constexpr int kTokenTile = 16;                // rows of a product
inline constexpr int kQkvColumns = 3 * kCtaColumns;  // of a CTA
inline constexpr int kHiddenColumns = 4 * kCtaColumns;

// Bytes from one row of operands to the next: an odd number of 16, so that ldmatrix meets no bank
// twice.
MJP_HOST_DEVICE constexpr int OperandPitch(int columns) { return columns * 2 + 16; }
// Of float32 partial sums: four rows of a product stand in different banks.
MJP_HOST_DEVICE constexpr int SumPitch(int width) { return width * 4 + 32; }

inline constexpr int kQkvPitch = OperandPitch(kQkvColumns);
inline constexpr int kContextPitch = OperandPitch(kCtaColumns);
inline constexpr int kHiddenPitch = OperandPitch(kHiddenColumns);
inline constexpr int kTerms = 4;  // vectors that a norm reads: gate, shift, scale, bias

// Floats of all biases of a block: of the layers behind the attention and the MLP, then of each
// CTA's columns of q, k, v and of the hidden layer.
MJP_HOST_DEVICE constexpr int BiasFloats(int ctas) {
  return ctas * (2 * kCtaColumns + kQkvColumns + kHiddenColumns);
}
// Groups of a warp's weights in a block.
MJP_HOST_DEVICE constexpr int BlockGroups(int ctas) { return 12 * ctas; }
MJP_HOST_DEVICE inline size_t WeightBytes(const Shape& s) {
  return size_t{1} * s.layers * s.Ctas() * kWarps * BlockGroups(s.Ctas()) * kGroupBytes;
}

// Offsets in shared memory, bytes.
struct Layout {
  int ring, input, sums, qkv, context, hidden, x, terms, turns, actions, end;
};
MJP_HOST_DEVICE inline Layout LayoutOf(const Shape& s) {
  const int ctas = s.Ctas(), rows = (s.length + kTokenTile - 1) / kTokenTile * kTokenTile;
  const int own = rows / ctas;
  Layout at;
  at.ring = 0;
  at.input = at.ring + kWarps * WeightPipeline::kRingBytes;
  at.sums = at.input + rows * OperandPitch(s.width);
  at.qkv = at.sums + ctas * own * SumPitch(s.width);
  at.context = at.qkv + rows * kQkvPitch;
  at.hidden = at.qkv;  // when q, k, v and what they make are read
  at.x = at.context + rows * kContextPitch;
  at.terms = at.x + own * s.width * 4;
  at.turns = at.terms + kTerms * s.width * 4;
  at.actions = at.turns + rows * kCtaColumns / 2 * 8;
  at.end = at.actions + 3 * own * s.action_dim * 4;
  return at;
}

template <int kCtas, int kTiles>
struct Cta {
  static constexpr int kWidth = kCtas * kCtaColumns, kRows = kTiles * kTokenTile;
  static constexpr int kEach = kRows / kCtas;  // tokens whose residual stream a CTA has
  static constexpr int kInputPitch = OperandPitch(kWidth), kSumPitch = SumPitch(kWidth);

  const Args& a;
  uint8_t* shared;
  Layout at;
  int row, rank;     // of the sequence; of this CTA in its cluster
  int first, count;  // tokens whose residual stream is here
  int head;          // size

  __device__ __forceinline__ Cta(const Args& args, uint8_t* memory)
      : a(args),
        shared(memory),
        at(LayoutOf(args.shape)),
        row(static_cast<int>(blockIdx.x)),
        rank(static_cast<int>(blockIdx.z)),
        first(rank * kEach),
        count(max(0, min(kEach, args.shape.length - first))),
        head(args.shape.HeadSize()) {}

  __device__ __forceinline__ float* Floats(int offset) const {
    return reinterpret_cast<float*>(shared + offset);
  }
  __device__ __forceinline__ int ActionCount() const { return count * a.shape.action_dim; }
  // Of the tokens here: x of the chain, its noise, the network's output.
  __device__ __forceinline__ float* X() const { return Floats(at.actions); }
  __device__ __forceinline__ float* Noise() const { return X() + kEach * a.shape.action_dim; }
  __device__ __forceinline__ float* Output() const { return Noise() + kEach * a.shape.action_dim; }
  __device__ __forceinline__ const float* Biases(int block) const {
    const auto* after = static_cast<const uint8_t*>(a.weights) + WeightBytes(a.shape);
    return reinterpret_cast<const float*>(after) + static_cast<size_t>(block) * BiasFloats(kCtas);
  }
};

// Column `c` of 64 columns' q, k and v side by side, `part` of the width, as the network counts
// them: of q and k both of a pair that the rotary embedding turns stand next to each other, in the
// network half a head apart.
__device__ __forceinline__ int QkvRow(const Shape& s, int part, int c) {
  const int which = c / kCtaColumns, in = c % kCtaColumns, head = s.HeadSize(), p = in % head;
  const int turned = which == 2 ? p : p % 2 * (head / 2) + p / 2;
  return which * s.width + part * kCtaColumns + in - p + turned;
}

// acc += tokens (kTiles * 16 rows of shared memory, 64 kSteps of k) times the next weights of this
// warp, kOut tiles of 8 out channels. Products of several tiles go on at once: one waits for its
// own sum of the 16 of k before.
template <Format F, int kSteps, int kTiles, int kOut>
__device__ __forceinline__ void Multiply(float (&acc)[kTiles][kOut][4], uint32_t tokens, int pitch,
                                         WeightPipeline& weights) {
  constexpr int kAtOnce = kOut % 4 == 0 ? 4 : kOut;
  static_assert(kAtOnce <= 4);
  const int lane = threadIdx.x & 31;
  uint32_t from = tokens + (lane & 15) * pitch + (lane >> 4) * 16;
#pragma unroll 1
  for (int step = 0; step < kSteps; ++step, from += kGroupK * 2) {
    uint32_t a[kTiles][kGroupK / 16][4];
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int k = 0; k < kGroupK / 16; ++k)
        LoadMatrix4(a[m][k], from + m * kTokenTile * pitch + k * 32);
#pragma unroll
    for (int first = 0; first < kOut; first += kAtOnce) {
      uint32_t b[kAtOnce][8];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) weights.Next(b[n]);
#pragma unroll
      for (int k = 0; k < kGroupK / 16; ++k)
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n)
#pragma unroll
          for (int m = 0; m < kTiles; ++m)
            MultiplyAccumulate<F>(acc[m][first + n], a[m][k], b[n][2 * k], b[n][2 * k + 1]);
    }
  }
}

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_CTA_CUH_
