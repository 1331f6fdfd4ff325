#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_ATTEND_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_ATTEND_CUH_

#include "kernels/cuda/sequence_kernel/attend.cuh"
#include "kernels/cuda/sequence_kernel/clusters.cuh"

namespace mjp::sequence_kernel {

// 16 rows and 16 columns of the context, `columns` of the cluster's 64, by this warp. The warps of
// a head make the same scores, each for itself: they wait for latency, not for products.
template <Format F, int kHead, int kTiles>
__device__ __forceinline__ void AttendColumns(const Place<kTiles>& p, int tile, int columns) {
  using T = Storage<F>;
  constexpr int kRows = Place<kTiles>::kRows, kKeyTiles = kRows / 8;
  enum { kQ, kK, kV };
  const auto at = [&](int part, int column, int row) {
    return SharedAddress(p.shared + p.at.qkv) + column / kGroupOut * Place<kTiles>::kQkvShard +
           row * kQkvShardRow + part * kGroupOut * 2;
  };
  const int lane = p.lane, head = columns / kHead * kHead;
  float scores[kKeyTiles][4] = {};
#pragma unroll
  for (int step = 0; step < kHead; step += 16) {
    uint32_t a[4], b[4];
    LoadMatrix4(a, at(kQ, head + step + (lane >> 4) * 8, tile * kTokenTile + (lane & 15)));
#pragma unroll
    for (int j = 0; j < kKeyTiles; j += 2) {
      const int key = j * 8 + (lane & 7) + ((lane >> 4) << 3);
      LoadMatrix4(b, at(kK, head + step + ((lane >> 3) & 1) * 8, key));
      MultiplyAccumulate<F>(scores[j], a, b[0], b[1]);
      MultiplyAccumulate<F>(scores[j + 1], a, b[2], b[3]);
    }
  }
  float total[2];
  WeighScores<kKeyTiles>(scores, total, kLog2E / sqrtf(static_cast<float>(kHead)),
                         p.a.shape.length);
  float sums[2][4] = {};
#pragma unroll
  for (int step = 0; step < kKeyTiles / 2; ++step) {
    uint32_t a[4], b[4];
    ToOperand<T>(a, scores[2 * step], scores[2 * step + 1]);
    LoadTransposed4(b, at(kV, columns + (lane >> 4) * 8, step * 16 + (lane & 15)));
    MultiplyAccumulate<F>(sums[0], a, b[0], b[1]);
    MultiplyAccumulate<F>(sums[1], a, b[2], b[3]);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float scale = FastReciprocal(total[r]);
    uint8_t* to = p.shared + p.at.context + p.RowOf(tile, r) * kWideContextPitch +
                  (columns + 2 * (lane & 3)) * 2;
#pragma unroll
    for (int j = 0; j < 2; ++j)
      *reinterpret_cast<uint32_t*>(to + j * 16) =
          PackTwo(T{}, sums[j][2 * r] * scale, sums[j][2 * r + 1] * scale);
  }
}

// The attention of the cluster's heads.
template <Format F, int kTiles>
__device__ __forceinline__ void Attend(const Place<kTiles>& p) {
  constexpr int kParts = kCtaColumns / 16;
  const int tile = p.warp / kParts, columns = p.warp % kParts * 16;
  if (tile >= kTiles) return;
  if (p.head == 64) return AttendColumns<F, 64>(p, tile, columns);
  if (p.head == 32) return AttendColumns<F, 32>(p, tile, columns);
  AttendColumns<F, 16>(p, tile, columns);
}

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_CLUSTERS_ATTEND_CUH_
