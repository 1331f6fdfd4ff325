#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_ATTEND_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_ATTEND_CUH_

#include "kernels/cuda/sequence_kernel/cta.cuh"
#include "kernels/cuda/transformer/mma_attention_parts.cuh"

namespace mjp::sequence_kernel {

// Scores to weights, which are not yet divided by their totals: of rows lane / 4 and lane / 4 + 8.
template <int kKeyTiles>
__device__ __forceinline__ void WeighScores(float (&scores)[kKeyTiles][4], float (&total)[2],
                                            float scale, int keys) {
  float largest[2];
  FindLargest(largest, scores, keys);
  largest[0] = QuadMax(largest[0]) * scale, largest[1] = QuadMax(largest[1]) * scale;
  total[0] = total[1] = 0;
#pragma unroll
  for (int j = 0; j < kKeyTiles; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      scores[j][e] = FastExp2(fmaf(scores[j][e], scale, -largest[e >> 1]));
      total[e >> 1] += scores[j][e];
    }
  }
  total[0] = QuadSum(total[0]), total[1] = QuadSum(total[1]);
}

// 16 rows of one head's attention by this warp: q, k and v of the CTA's columns stand side by side
// in shared memory, and the head's columns of the context become the result. Scores never leave
// the registers.
template <Format F, int kHead, typename C>
__device__ __forceinline__ void AttendRows(const C& cta, int head, int tile) {
  using T = Storage<F>;
  constexpr int kKeyTiles = C::kRows / 8;
  const int lane = threadIdx.x & 31;
  const uint32_t q = SharedAddress(cta.shared + cta.at.qkv) + head * kHead * 2;
  const uint32_t k = q + kCtaColumns * 2, v = k + kCtaColumns * 2;
  float scores[kKeyTiles][4] = {};
#pragma unroll
  for (int step = 0; step < kHead / 16; ++step) {
    uint32_t a[4], b[4];
    LoadMatrix4(a,
                q + (tile * kTokenTile + (lane & 15)) * kQkvPitch + step * 32 + (lane >> 4) * 16);
#pragma unroll
    for (int j = 0; j < kKeyTiles; j += 2) {
      const int key = j * 8 + (lane & 7) + ((lane >> 4) << 3);
      LoadMatrix4(b, k + key * kQkvPitch + step * 32 + ((lane >> 3) & 1) * 16);
      MultiplyAccumulate<F>(scores[j], a, b[0], b[1]);
      MultiplyAccumulate<F>(scores[j + 1], a, b[2], b[3]);
    }
  }
  float total[2];
  WeighScores<kKeyTiles>(scores, total, kLog2E / sqrtf(static_cast<float>(kHead)),
                         cta.a.shape.length);
  float sums[kHead / 8][4] = {};
#pragma unroll
  for (int step = 0; step < kKeyTiles / 2; ++step) {
    uint32_t a[4], b[4];
    ToOperand<T>(a, scores[2 * step], scores[2 * step + 1]);
#pragma unroll
    for (int j = 0; j < kHead / 8; j += 2) {
      LoadTransposed4(b, v + (step * 16 + (lane & 15)) * kQkvPitch + j * 16 + (lane >> 4) * 16);
      MultiplyAccumulate<F>(sums[j], a, b[0], b[1]);
      MultiplyAccumulate<F>(sums[j + 1], a, b[2], b[3]);
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float each = FastReciprocal(total[r]);
    uint8_t* to = cta.shared + cta.at.context +
                  (tile * kTokenTile + (lane >> 2) + r * 8) * kContextPitch +
                  (head * kHead + 2 * (lane & 3)) * 2;
#pragma unroll
    for (int j = 0; j < kHead / 8; ++j)
      *reinterpret_cast<uint32_t*>(to + j * 16) =
          PackTwo(T{}, sums[j][2 * r] * each, sums[j][2 * r + 1] * each);
  }
}

template <Format F, int kHead, int kCtas, int kTiles>
__device__ __forceinline__ void AttendHeads(const Cta<kCtas, kTiles>& cta) {
  const int warp = threadIdx.x / 32;
  if (warp < kCtaColumns / kHead * kTiles) AttendRows<F, kHead>(cta, warp / kTiles, warp % kTiles);
}

// The attention of this CTA's heads, of which each warp has 16 rows of one, or nothing.
template <Format F, int kCtas, int kTiles>
__device__ __forceinline__ void Attend(const Cta<kCtas, kTiles>& cta) {
  if (cta.head == 64) return AttendHeads<F, 64>(cta);
  if (cta.head == 32) return AttendHeads<F, 32>(cta);
  AttendHeads<F, 16>(cta);
}

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_ATTEND_CUH_
