#ifndef KERNELS_CUDA_TRANSFORMER_SHORT_ATTENTION_CUH_
#define KERNELS_CUDA_TRANSFORMER_SHORT_ATTENTION_CUH_

#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/transformer/mma_attention_parts.cuh"

namespace mjp {

// The attention of one head over a sequence of at most 32 rows in shared memory, by one warp. A row
// at `qkv` holds q, k and v of `width` each, and rows beyond `rows` are zeros; the head's columns
// of `out` become the result. Two rows of 16 at a time; scores never leave the registers.
template <Format F, int kHead>
__device__ __forceinline__ void ShortAttention(uint32_t qkv, int pitch, int width, int head,
                                               int rows, uint8_t* out, int out_pitch) {
  using T = Storage<F>;
  constexpr int kKeys = 32;
  const int lane = threadIdx.x & 31;
  const uint32_t q = qkv + head * kHead * 2, k = q + width * 2, v = k + width * 2;
  const float scale = kLog2E / sqrtf(static_cast<float>(kHead));
  for (int m = 0; m < 2; ++m) {
    float scores[kKeys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kHead / 16; ++step) {
      uint32_t a[4], b[4];
      LoadMatrix4(a, q + (m * 16 + (lane & 15)) * pitch + step * 32 + (lane >> 4) * 16);
#pragma unroll
      for (int j = 0; j < kKeys / 8; j += 2) {
        const int row = j * 8 + (lane & 7) + ((lane >> 4) << 3);
        LoadMatrix4(b, k + row * pitch + step * 32 + ((lane >> 3) & 1) * 16);
        MultiplyAccumulate<F>(scores[j], a, b[0], b[1]);
        MultiplyAccumulate<F>(scores[j + 1], a, b[2], b[3]);
      }
    }
    float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const bool there = j * 8 + 2 * (lane & 3) + (e & 1) < rows;
        scores[j][e] = there ? scores[j][e] * scale : -INFINITY;
        largest[e >> 1] = fmaxf(largest[e >> 1], scores[j][e]);
      }
    }
    largest[0] = QuadMax(largest[0]), largest[1] = QuadMax(largest[1]);
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[j][e] = exp2f(scores[j][e] - largest[e >> 1]);
        total[e >> 1] += scores[j][e];
      }
    }
    total[0] = QuadSum(total[0]), total[1] = QuadSum(total[1]);
    float sums[kHead / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t a[4], b[4];
      ToOperand<T>(a, scores[2 * step], scores[2 * step + 1]);
#pragma unroll
      for (int j = 0; j < kHead / 8; j += 2) {
        LoadTransposed4(b, v + (step * 16 + (lane & 15)) * pitch + j * 16 + (lane >> 4) * 16);
        MultiplyAccumulate<F>(sums[j], a, b[0], b[1]);
        MultiplyAccumulate<F>(sums[j + 1], a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint8_t* to = out + (m * 16 + (lane >> 2) + r * 8) * out_pitch +
                    (head * kHead + 2 * (lane & 3)) * static_cast<int>(sizeof(T));
#pragma unroll
      for (int j = 0; j < kHead / 8; ++j)
        *reinterpret_cast<uint32_t*>(to + j * 16) =
            PackTwo(T{}, sums[j][2 * r] / total[r], sums[j][2 * r + 1] / total[r]);
    }
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_SHORT_ATTENTION_CUH_
