// y = act(GN(sum_k w x) + residual), 3x3, 64 -> 64 channels, for many pictures.
//
// A block stays on its multiprocessor with all weights (74 KB) in shared memory and takes one
// picture after the other: the map of at most 576 positions (a pixel's 64 channels are one row of
// 128 bytes) comes in once, while the one before is multiplied, and serves all nine taps. Three
// warpgroups multiply 192 positions each (wgmma, 64 x 64 x 16): positions from registers, read by
// ldmatrix with the row moved by the tap, or from a row of zeros outside the map; weights from
// shared memory. The sums of the whole picture are in registers then, so the norm is two sums over
// the block, and the normalised map takes the place of its input on its way out, as the residual
// did on its way in. Bytes moved: x, residual and y once, weights once per block. Bound by the
// products: 4 KB of shared memory are read for every 32 cycles of the tensor cores' work, which
// just keeps up.

#include <algorithm>

#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/conv/implicit_gemm_wgmma.cuh"
#include "kernels/cuda/norm/conv_group_norm_resident.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace mjp {
namespace {

constexpr int kWarpgroups = 3, kThreads = 128 * kWarpgroups, kWarps = kThreads / 32;
constexpr int kTiles = 3;  // of 64 positions, per warpgroup
constexpr int kMostPositions = 64 * kTiles * kWarpgroups;
constexpr int kChannels = 64, kBlocks = kChannels / 8, kTaps = 9;
constexpr int kTapBytes = kChannels * kRowBytes, kMapBytes = kMostPositions * kRowBytes;
constexpr float kEpsilon = 1e-5f;

struct Shared {
  uint8_t weights[kTaps * kTapBytes];  // [tap][out channel][in channel], swizzled
  uint8_t maps[2][kMapBytes];          // [position][channel], swizzled
  uint8_t zeros[kRowBytes];
  float sums[kWarps][kBlocks], totals[kBlocks];
};
constexpr int kAlignment = 1024;  // of the swizzle
constexpr size_t kSharedBytes = sizeof(Shared) + kAlignment;

using Sums = float[kTiles][kChannels / 2];

// Copies a map between global and shared memory, 16 bytes at a time.
template <typename Copy>
__device__ __forceinline__ void ForEachVector(int positions, Copy&& copy) {
#pragma unroll 4
  for (int i = threadIdx.x; i < positions * kStageVectors; i += kThreads)
    copy(Swizzled(0, i / kStageVectors, i % kStageVectors), size_t{16} * i);
}
__device__ __forceinline__ void LoadMap(uint8_t* map, const void* x, int picture, int positions) {
  const auto* from = static_cast<const uint8_t*>(x) + size_t{1} * picture * positions * kRowBytes;
  ForEachVector(positions, [&](uint32_t at, size_t offset) {
    CopyAsync16(SharedAddress(map) + at, from + offset, true);
  });
  CommitCopies();
}
__device__ __forceinline__ void StoreMap(const uint8_t* map, void* y, int picture, int positions) {
  auto* to = static_cast<uint8_t*>(y) + size_t{1} * picture * positions * kRowBytes;
  ForEachVector(positions, [&](uint32_t at, size_t offset) {
    *reinterpret_cast<uint4*>(to + offset) = *reinterpret_cast<const uint4*>(map + at);
  });
}

// What a lane reads of the map for the tiles of its warpgroup: one position of each, and at which
// taps there is a pixel.
struct Window {
  int position[kTiles];
  uint32_t inside[kTiles];

  __device__ __forceinline__ Window(const ConvShape& s, int first) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      const int n = first + i * 64, oy = n / s.in_w, ox = n - oy * s.in_w;
      position[i] = n;
      inside[i] = 0;
      for (int tap = 0; tap < kTaps; ++tap) {
        const int iy = oy + tap / 3 - 1, ix = ox + tap % 3 - 1;
        const bool pixel = oy < s.in_h && iy >= 0 && iy < s.in_h && ix >= 0 && ix < s.in_w;
        inside[i] |= uint32_t{pixel} << tap;
      }
    }
  }
};

// Half a tap at a time: the fragments of a whole one would not leave enough registers.
template <Format F>
__device__ __forceinline__ void Multiply(Sums& sums, const Window& window, int width, uint32_t map,
                                         uint32_t zeros, uint32_t weights) {
  constexpr int kSteps = kStageVectors / 4;  // of 16 k in half a tap
  const int half = threadIdx.x >> 4 & 1;
  uint32_t a[kTiles][kSteps][4];
#pragma unroll 1
  for (int part = 0; part < 2 * kTaps; ++part) {
    const int tap = part / 2, first = part % 2 * kSteps;
    const int shift = (tap / 3 - 1) * width + tap % 3 - 1;
    const uint32_t b = weights + tap * kTapBytes + first * 32;
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      const int row = window.position[i] + shift;
      const uint32_t base = window.inside[i] >> tap & 1 ? map + row * kRowBytes : zeros;
      WaitWgmma<kTiles - 1>();  // this tile's products of the part before
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        LoadMatrix4(a[i][step], base + ((((first + step) * 2 + half) ^ (row & 7)) << 4));
      BeginWgmma();
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        Wgmma<F>(sums[i], a[i][step], WgmmaTile(b + step * 32));
      CommitWgmma();
    }
  }
  WaitWgmma<0>();
}

// f(sum of term(sum, block of 8 channels) over the group's whole map) of each block's group.
template <typename Term, typename Function>
__device__ __forceinline__ void SumGroups(const Sums& sums, int row0, int positions, int groups,
                                          Shared& shared, float (&out)[kBlocks], Term&& term,
                                          Function&& f) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    float part = 0.0f;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        if (row0 + i * 64 + (q >> 1) * 8 < positions) part += term(sums[i][4 * j + q], j);
    part = WarpSum(part);
    if (lane == 0) shared.sums[warp][j] = part;
  }
  __syncthreads();
  if (warp == 0) {  // four lanes to a block of channels, three warps' sums to a lane
    float total = 0.0f;
    for (int w = lane / kBlocks; w < kWarps; w += 32 / kBlocks)
      total += shared.sums[w][lane % kBlocks];
    for (int mask = kBlocks; mask < 32; mask *= 2) total += __shfl_xor_sync(~0u, total, mask);
    for (int mask = 1; mask < kBlocks / groups; mask *= 2)
      total += __shfl_xor_sync(~0u, total, mask);
    if (lane < kBlocks) shared.totals[lane] = f(total);
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) out[j] = shared.totals[j];
}

// Normalises the sums into the map, which holds the residual if there is one.
template <typename T>
__device__ __forceinline__ void RunResidentEpilogue(const ConvGroupNormArgs& p, const Sums& sums,
                                                    int row0, int positions, Shared& shared,
                                                    uint8_t* map) {
  const int pair = threadIdx.x & 3;
  const float count = static_cast<float>(positions * kChannels / p.groups);
  float mean[kBlocks], inverse[kBlocks];
  SumGroups(
      sums, row0, positions, p.groups, shared, mean, [](float v, int) { return v; },
      [=](float sum) { return sum / count; });
  SumGroups(
      sums, row0, positions, p.groups, shared, inverse,
      [&](float v, int j) { return (v - mean[j]) * (v - mean[j]); },
      [=](float squares) { return 1.0f / sqrtf(squares / count + kEpsilon); });
  if (p.conv.residual) {
    WaitCopies<0>();
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    const int channel = j * 8 + pair * 2;
    const float2 weight = *reinterpret_cast<const float2*>(p.weight + channel);
    const float2 bias = *reinterpret_cast<const float2*>(p.bias + channel);
    // the rows of a thread are multiples of 8 apart: their vectors lie alike
    uint8_t* const at = map + Swizzled(0, row0, j) + pair * 4;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = i * 64 + h * 8;
        if (row0 + row >= positions) continue;
        auto* const place = reinterpret_cast<Pack<T, 2>*>(at + row * kRowBytes);
        const float* v = &sums[i][4 * j + 2 * h];
        float2 y = {__fmaf_rn(v[0] - mean[j], weight.x * inverse[j], bias.x),
                    __fmaf_rn(v[1] - mean[j], weight.y * inverse[j], bias.y)};
        if (p.conv.residual) y.x += ToFloat(place->v[0]), y.y += ToFloat(place->v[1]);
        if (p.conv.relu) y.x = fmaxf(y.x, 0.0f), y.y = fmaxf(y.y, 0.0f);
        *place = {FromFloat<T>(y.x), FromFloat<T>(y.y)};
      }
  }
  __syncthreads();
}

// grid: blocks, each of which takes every gridDim.x-th picture
template <Format F>
__global__ void __launch_bounds__(kThreads, 1)
    ResidentConvGroupNormKernel(const ConvGroupNormArgs p) {
  if constexpr (!kHaveWgmma) return Trap();
  extern __shared__ uint8_t raw[];
  const uint32_t skip = (kAlignment - SharedAddress(raw) % kAlignment) % kAlignment;
  Shared& shared = *reinterpret_cast<Shared*>(raw + skip);
  const ConvShape& s = p.conv.shape;
  const int positions = s.in_h * s.in_w, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  // rows of the tiles: 192 for a warpgroup, of each 64 of them 16 for a warp
  const int warp_row = warp / 4 * kTiles * 64 + warp % 4 * 16;
  const Window window(s, warp_row + (lane & 15));

  for (int i = threadIdx.x; i < kTaps * kChannels * kStageVectors; i += kThreads) {
    const int tap = i / kStageVectors % kTaps, channel = i / kStageVectors / kTaps;
    CopyAsync16(
        Swizzled(SharedAddress(shared.weights) + tap * kTapBytes, channel, i % kStageVectors),
        static_cast<const uint8_t*>(p.conv.weight) + size_t{16} * i, true);
  }
  if (threadIdx.x < kRowBytes / 4) reinterpret_cast<float*>(shared.zeros)[threadIdx.x] = 0.0f;
  ReleaseSuccessor();
  WaitForPredecessor();
  LoadMap(shared.maps[0], p.conv.x, blockIdx.x, positions);
  for (int picture = blockIdx.x, slot = 0; picture < s.batch; picture += gridDim.x, slot ^= 1) {
    WaitCopies<0>();
    FenceAsyncProxy();  // the weights
    __syncthreads();
    const int next = picture + gridDim.x;
    if (next < s.batch) LoadMap(shared.maps[slot ^ 1], p.conv.x, next, positions);
    Sums sums = {};
    Multiply<F>(sums, window, s.in_w, SharedAddress(shared.maps[slot]), SharedAddress(shared.zeros),
                SharedAddress(shared.weights));
    __syncthreads();  // nobody reads the map any more
    if (p.conv.residual) LoadMap(shared.maps[slot], p.conv.residual, picture, positions);
    RunResidentEpilogue<Storage<F>>(p, sums, warp_row + (lane >> 2), positions, shared,
                                    shared.maps[slot]);
    StoreMap(shared.maps[slot], p.conv.y, picture, positions);
  }
}

template <Format F>
void LaunchFormat(const ConvGroupNormArgs& p, cudaStream_t stream) {
  AllowShared(ResidentConvGroupNormKernel<F>, kSharedBytes,
              "shared memory of the convolution of maps");
  const int blocks = GpuTraits::Current().multiprocessors;
  LaunchShape shape;
  shape.grid = dim3(std::min(p.conv.shape.batch, blocks));
  shape.block = dim3(kThreads);
  shape.shared_bytes = kSharedBytes;
  Launch(ResidentConvGroupNormKernel<F>, shape, stream, "convolution of maps", p);
}

}  // namespace

bool ResidentConvGroupNormSupports(Format format, const ConvGroupNormArgs& args) {
  constexpr int kFewPictures = 64;
  const ConvShape& s = args.conv.shape;
  const int positions = s.out_h * s.out_w;
  return (format == Format::kFp16 || format == Format::kBf16) && s.batch > kFewPictures &&
         s.kernel_h == 3 && s.kernel_w == 3 && s.stride == 1 && s.pad_h == 1 && s.pad_w == 1 &&
         s.in_c == kChannels && s.out_c == kChannels && s.first_c == 0 && s.phases == 1 &&
         !s.upsample2x && 2 * positions > kMostPositions && positions <= kMostPositions &&
         args.groups > 0 && kBlocks % args.groups == 0 && args.conv.bias == nullptr &&
         args.conv.row_bias == nullptr && args.conv.activation == TokenActivation::kNone &&
         !args.conv.y_fp32 && GpuTraits::Current().Wgmma();
}

void LaunchResidentConvGroupNorm(Format format, const ConvGroupNormArgs& args,
                                 cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(args, stream);
  LaunchFormat<Format::kBf16>(args, stream);
}

}  // namespace mjp
