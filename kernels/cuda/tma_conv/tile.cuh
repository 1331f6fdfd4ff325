#ifndef KERNELS_CUDA_TMA_CONV_TILE_CUH_
#define KERNELS_CUDA_TMA_CONV_TILE_CUH_

#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/primitives/fragments.cuh"
#include "kernels/cuda/primitives/tma.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"
#include "kernels/cuda/tma_conv/plan.h"

// A warpgroup's tile: where it lies, its products, and its epilogue.

namespace mjp::tma_conv {

constexpr int kWarpgroup = 128;  // threads
constexpr int kThreads = (kWarpgroups + 1) * kWarpgroup;
constexpr int kWarpsOfTile = 4;
constexpr int kStagedPositions = 16;  // of a warp's epilogue at a time
constexpr int kStagedBytes = kStagedPositions * 32;
static_assert(kStagingBytes == kWarpgroups * kWarpsOfTile * 2 * kStagedBytes);

struct Args {
  ConvArgs a;
  Plan plan;
  int units;  // Plan::Units
  CUtensorMap x, weights, residual;
};

// Where a tile's first position is.
struct TilePlace {
  int map, y, x;
};
__device__ __forceinline__ TilePlace PlaceOf(const Plan& plan, int tile) {
  const int column = tile % plan.columns, rest = tile / plan.columns;
  return {rest / plan.bands, rest % plan.bands * plan.rows, column * plan.width};
}

// Adds one tap's 64 channels: 64 out channels in `weights` times 256 positions from `patch` on.
template <Format F>
__device__ __forceinline__ void MultiplyTap(float (&sums)[kPositions / 2], uint32_t weights,
                                            uint32_t patch, bool first) {
  BeginWgmma();
#pragma unroll
  for (int step = 0; step < 4; ++step)
    Wgmma<F>(sums, WgmmaTile(weights + step * 32), WgmmaTile(patch + step * 32),
             first && step == 0);
  CommitWgmma();
}

// The products of a tile: `patches` has a slot for each 64 in channels, `weights` one for each tap
// of these. Slots are given back once the products that read them are done.
template <Format F>
__device__ __forceinline__ void MultiplyTile(const ConvShape& s, const Plan& plan,
                                             float (&sums)[kPositions / 2], RingSlot& patches,
                                             RingSlot& weights, uint32_t patch_base,
                                             uint32_t weight_base, int patches_apart) {
  const bool signals = threadIdx.x % 32 == 0;
  uint32_t read_patch = 0, read_weights = 0;  // barriers of the slots that products still read
  for (int slice = 0; slice < plan.slices; ++slice) {
    patches.AwaitFull();
    const uint32_t patch = patch_base + patches.slot * plan.slot_rows * kSliceBytes;
    for (int ky = 0; ky < s.kernel_h; ++ky) {
      for (int kx = 0; kx < s.kernel_w; ++kx) {
        weights.AwaitFull();
        MultiplyTap<F>(sums, weight_base + weights.slot * plan.channels * kSliceBytes,
                       patch + (ky * plan.pitch + kx) * kSliceBytes, slice + ky + kx == 0);
        WaitWgmma<1>();
        if (signals && read_weights != 0) Arrive(read_weights);
        if (signals && read_patch != 0) Arrive(read_patch);
        read_weights = weights.Empty(), read_patch = 0;
        weights.Next();
      }
    }
    read_patch = patches.Empty();
    for (int i = 0; i < patches_apart; ++i) patches.Next();
  }
  WaitWgmma<0>();
  if (signals) Arrive(read_weights), Arrive(read_patch);
}

// What a thread adds to its two out channels, m and m + 8.
struct ChannelTerms {
  float bias[2] = {};
  float row_bias[2][2] = {};  // of the two positions whose sums it has in each eight
  bool has_row_bias = false;

  __device__ __forceinline__ void Load(const ConvArgs& a, int m, int x) {
    has_row_bias = a.row_bias != nullptr;
    for (int h = 0; h < 2; ++h) {
      if (a.bias != nullptr) bias[h] = a.bias[m + 8 * h];
      for (int e = 0; e < 2; ++e)
        if (has_row_bias && x + e < a.row_period)
          row_bias[h][e] = a.row_bias[static_cast<size_t>(x + e) * a.shape.out_c + m + 8 * h];
    }
  }
};

// The epilogue of one warp: 16 out channels of all positions, `residual` as the patch of the same
// positions in shared memory, or 0. Sums turn to rows of channels through `staging`.
template <Format F>
struct WarpEpilogue {
  using T = Storage<F>;
  const Args& p;
  TilePlace place;
  int m0;  // of this warp's channels
  uint32_t staging, residual;
  ChannelTerms terms;

  // Sums of eight positions, of the thread's channels m and m + 8 in turn, as 16-bit pairs.
  __device__ __forceinline__ void Finish(float (&v)[4], uint32_t residual_low,
                                         uint32_t residual_high, uint32_t (&packed)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      Pack<T, 2> added;
      *reinterpret_cast<uint32_t*>(&added) = h == 0 ? residual_low : residual_high;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& value = v[2 * h + e];
        value += terms.bias[h];
        if (terms.has_row_bias) value += terms.row_bias[h][e];
        if (p.a.activation == TokenActivation::kRelu) value = value < 0.0f ? 0.0f : value;
        if (residual != 0) value += ToFloat(added.v[e]);
        if (p.a.relu) value = fmaxf(value, 0.0f);
      }
      packed[h] = PackTwo(T{}, v[2 * h], v[2 * h + 1]);
    }
  }

  // Stores 16 positions from row `first` of the tile's products on: a lane half of one's channels.
  __device__ __forceinline__ void Store(int first, uint32_t from) const {
    const ConvShape& s = p.a.shape;
    const Plan& plan = p.plan;
    const int lane = threadIdx.x % 32, staged = lane / 2, half = lane % 2;
    const int row = first + staged, dy = row / plan.pitch, dx = row - dy * plan.pitch;
    const int y = place.y + dy, x = place.x + dx;
    uint4 values;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(values.x), "=r"(values.y), "=r"(values.z), "=r"(values.w)
                 : "r"(from + staged * 32 + ((half ^ (staged >> 2 & 1)) << 4))
                 : "memory");
    const bool inside = dx < plan.width && dy < plan.rows && x < plan.map_width &&
                        y < plan.height && place.map < plan.maps;
    if (!inside) return;
    const size_t position = static_cast<size_t>(place.map * plan.height + y) * plan.map_width + x;
    *reinterpret_cast<uint4*>(static_cast<T*>(p.a.y) + position * s.out_c + m0 + half * 8) = values;
  }

  __device__ __forceinline__ void Run(float (&sums)[kPositions / 2]) const {
    const int lane = threadIdx.x % 32, matrix = lane / 8, warp = threadIdx.x / 32 % kWarpsOfTile;
    const int row_of_pair = (matrix >> 1) * 8 + lane % 8, half = matrix & 1;
    const uint32_t to = row_of_pair * 32 + ((half ^ (row_of_pair >> 2 & 1)) << 4);
#pragma unroll
    for (int pair = 0; pair < kPositions / kStagedPositions; ++pair) {
      uint32_t r[4] = {}, packed[2][2];
      if (residual != 0)
        LoadTransposed4(r,
                        Swizzled(residual, pair * kStagedPositions + row_of_pair, 2 * warp + half));
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        float(&v)[4] = reinterpret_cast<float(&)[4]>(sums[pair * 8 + block * 4]);
        Finish(v, r[2 * block], r[2 * block + 1], packed[block]);
      }
      const uint32_t buffer = staging + pair % 2 * kStagedBytes;
      StoreMatrix4Transposed(buffer + to, packed[0][0], packed[0][1], packed[1][0], packed[1][1]);
      __syncwarp();
      Store(pair * kStagedPositions, buffer);
    }
  }
};

}  // namespace mjp::tma_conv

#endif  // KERNELS_CUDA_TMA_CONV_TILE_CUH_
