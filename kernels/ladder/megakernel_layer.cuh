#ifndef KERNELS_LADDER_MEGAKERNEL_LAYER_CUH_
#define KERNELS_LADDER_MEGAKERNEL_LAYER_CUH_

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/ladder/group_sum.cuh"
#include "kernels/ladder/megakernel.cuh"

// What the rungs of the megakernel share: a layer of one block by mma.sync, and its epilogue. A
// block has 8 warps for either. It owns an output tile: one norm group (64 channels) of one row.

namespace mjp::ladder {

inline constexpr int kChainWarps = 8, kChainThreads = 32 * kChainWarps;
inline constexpr int kChainBlocks = kChainRows * kChainGroups;
inline constexpr int kGroupChannels = kChainChannels / kChainGroups;
inline constexpr int kOutTiles = kGroupChannels / 16;  // m16 tiles of a norm group
inline constexpr int kInBlocks = kChainChannels / 16;  // of 16 in channels
inline constexpr int kThreadWords = 8;                 // that a thread takes of an input
static_assert(kTileWords == kChainThreads);

// Barriers of 256 threads, whole warps.
inline constexpr int kEpilogueBarrier = 1, kMmaBarrier = 2;
template <int kBarrier>
__device__ __forceinline__ void Sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kChainThreads) : "memory");
}

struct OwnTile {
  int row, group;
};
__device__ __forceinline__ OwnTile TileOfBlock() {
  return {static_cast<int>(blockIdx.x) % kChainRows, static_cast<int>(blockIdx.x) / kChainRows};
}

// The input of a product in shared memory, fp16, with two positions of zeros on either side. The
// pitch of a position puts 8 of them into different banks.
template <int kRows, int kChannels>
struct ChainInput {
  alignas(16) uint16_t at[kRows][kChainLength + 4][kChannels + 8];

  __device__ __forceinline__ void ClearHalo(int thread) {
    for (int i = thread; i < kRows * 4 * kChannels; i += kChainThreads) {
      const int c = i % kChannels, h = i / kChannels % 4, row = i / kChannels / 4;
      at[row][h < 2 ? h : h + kChainLength][c] = 0;
    }
  }
  __device__ __forceinline__ void Put(int row, int word, uint32_t value) {
    const int c = word / 4, position = word % 4 * 2 + 2;
    at[row][position][c] = static_cast<uint16_t>(value);
    at[row][position + 1][c] = static_cast<uint16_t>(value >> 16);
  }
};

// This lane's part of the weights of 16 out x 16 in channels and one tap.
__device__ __forceinline__ const uint4* Fragment(const ChainArgs& a, int layer, int out_tile,
                                                 int in_block, int tap) {
  const int fragment = ((layer * kInBlocks + out_tile) * kInBlocks + in_block) * kChainTaps + tap;
  return a.weights + static_cast<size_t>(fragment) * 32 + threadIdx.x % 32;
}

// sums += weight x the 8 positions of `row`, whose in channels begin at `channel`, moved by `tap`.
template <int kPitch>
__device__ __forceinline__ void MultiplyStep(float (&sums)[4], const uint4& weight,
                                             const uint16_t (&row)[kChainLength + 4][kPitch],
                                             int channel, int tap) {
  const int lane = threadIdx.x % 32;
  const uint16_t* in = &row[lane / 4 + tap][channel + lane % 4 * 2];
  const uint32_t a[4] = {weight.x, weight.y, weight.z, weight.w};
  MultiplyAccumulate<Format::kFp16>(sums, a, *reinterpret_cast<const uint32_t*>(in),
                                    *reinterpret_cast<const uint32_t*>(in + 8));
}

__device__ __forceinline__ uint32_t Word(float first, float second) {
  const __half2 both = __floats2half2_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ __forceinline__ float2 Values(uint32_t word) {
  return __half22float2(*reinterpret_cast<const __half2*>(&word));
}

// The epilogue of an output tile, whose word `thread` has the sums `v`: bias, GroupNorm, Mish.
__device__ __forceinline__ uint32_t Epilogue(const ChainArgs& a, int layer, int group, float2 v,
                                             int thread, float2 (&moments)[kChainWarps]) {
  const int channel = layer * kChainChannels + group * kGroupChannels + thread / 4;
  v.x += a.bias[channel], v.y += a.bias[channel];
  const float sum = WarpSum(v.x + v.y), squares = WarpSum(v.x * v.x + v.y * v.y);
  if (thread % 32 == 0) moments[thread / 32] = make_float2(sum, squares);
  Sync<kEpilogueBarrier>();
  float2 all = make_float2(0, 0);
  for (const float2& m : moments) all.x += m.x, all.y += m.y;
  Sync<kEpilogueBarrier>();  // the next layer writes them again
  const float mean = all.x / (2 * kTileWords);
  const float inverse = rsqrtf(fmaxf(all.y / (2 * kTileWords) - mean * mean, 0) + kNormEpsilon);
  const auto activated = [&](float x) {
    return Mish((x - mean) * inverse * a.scale[channel] + a.shift[channel]);
  };
  return Word(activated(v.x), activated(v.y));
}

// What a block needs in shared memory where it multiplies its output tile itself (rungs 1 to 4).
struct TileMemory {
  ChainInput<1, kChainChannels> input;
  float2 sums[kChainWarps][kTileWords];
  float2 moments[kChainWarps];
};

// A layer of the block's output tile, whose input is in shared memory: warps share the in channels.
// Returns word `threadIdx.x` of it.
__device__ __forceinline__ uint32_t RunTile(const ChainArgs& a, int layer, const OwnTile& own,
                                            TileMemory& memory) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr int kWarpBlocks = kInBlocks / kChainWarps;
  Sync<kMmaBarrier>();
  float sums[kOutTiles][4] = {};
  for (int block = warp * kWarpBlocks; block < (warp + 1) * kWarpBlocks; ++block) {
    uint4 weights[kChainTaps][kOutTiles];  // ptxas decides how many are on their way
#pragma unroll
    for (int i = 0; i < kChainTaps * kOutTiles; ++i)
      weights[i / kOutTiles][i % kOutTiles] =
          __ldg(Fragment(a, layer, own.group * kOutTiles + i % kOutTiles, block, i / kOutTiles));
#pragma unroll
    for (int i = 0; i < kChainTaps * kOutTiles; ++i)
      MultiplyStep(sums[i % kOutTiles], weights[i / kOutTiles][i % kOutTiles], memory.input.at[0],
                   block * 16, i / kOutTiles);
  }
  for (int tile = 0; tile < kOutTiles; ++tile) {  // word: 4 x channel + pair of positions
    memory.sums[warp][tile * 64 + lane] = make_float2(sums[tile][0], sums[tile][1]);
    memory.sums[warp][tile * 64 + 32 + lane] = make_float2(sums[tile][2], sums[tile][3]);
  }
  Sync<kMmaBarrier>();
  float2 v = make_float2(0, 0);
  for (const auto& part : memory.sums) v.x += part[threadIdx.x].x, v.y += part[threadIdx.x].y;
  return Epilogue(a, layer, own.group, v, threadIdx.x, memory.moments);
}

// Launches 128 blocks that are all resident at once. Throws Error.
template <auto kKernel>
void LaunchResident(const ChainArgs& args, int threads, size_t shared_bytes, cudaStream_t stream) {
  AllowShared(kKernel, static_cast<int>(shared_bytes), "shared memory of a chain");
  LaunchShape shape;
  shape.grid = dim3(kChainBlocks), shape.block = dim3(threads);
  shape.shared_bytes = shared_bytes;
  shape.cooperative = true;
  Launch(kKernel, shape, stream, "a chain", args);
}

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_MEGAKERNEL_LAYER_CUH_
