// pooled[p][m] = max over 3x3 positions n around 2 p of relu(bias[m] + sum_k x[n][k] w[m][k]).
//
// A block makes 8 x 10 pooled positions, for which it computes 17 x 21 of the convolution; one in
// ten twice, with its neighbours. All weights (32 KB) and the pixels under the tile (15 KB) are
// copied to shared memory once. Each warpgroup reads 64 positions' pixels of a tap with ldmatrix
// and multiplies from registers (wgmma, 64 x 64 x 16): no position's pixels are gathered again for
// the next tap. The results wait in shared memory, as the format stores them, for the maximum.
// Bytes from L2: the pixels 1.5 times, the weights once for each 80 pooled positions. Two blocks
// share a multiprocessor: one multiplies while the other loads or pools.

#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/conv/stem_max_pool.cuh"
#include "kernels/cuda/conv/wgmma_tile.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace mjp {
namespace {

constexpr int kTaps = 4, kPad = 2, kInChannels = 16, kOutChannels = 64;
constexpr int kPoolH = 8, kPoolW = 10;                           // of a block's tile
constexpr int kConvH = 2 * kPoolH + 1, kConvW = 2 * kPoolW + 1;  // that it reads
constexpr int kPixelsH = kConvH + kTaps - 1, kPixelsW = kConvW + kTaps - 1;
constexpr int kPositions = kConvH * kConvW, kTile = 64, kTiles = (kPositions + kTile - 1) / kTile;
constexpr int kThreads = 2 * kWarpgroup, kVector = 8;
constexpr int kPixelBytes = kInChannels * 2, kHalves = kPixelBytes / 16;
constexpr int kKTiles = kTaps * kTaps * kInChannels * 2 / kRowBytes;  // 128 bytes of k each
constexpr int kKTileBytes = kOutChannels * kRowBytes, kStepsOfKTile = kRowBytes / kPixelBytes;
constexpr int kWeightBytes = kKTiles * kKTileBytes;
constexpr int kPixelsBytes = kPixelsH * kPixelsW * kPixelBytes;
constexpr int kMapPitch = kOutChannels * 2 + 16;  // bytes; rows' writes meet no bank twice
constexpr size_t kSharedBytes =
    kTileAlignment + kWeightBytes + kPixelsBytes + kPositions * kMapPitch;
static_assert(kTiles % (kThreads / kWarpgroup) == 0);

// Where half of a pixel stands: eight neighbours' halves meet no bank twice.
__device__ __forceinline__ uint32_t PixelAt(uint32_t pixels, int pixel, int half) {
  return pixels + pixel * kPixelBytes + ((half ^ (pixel >> 2 & 1)) << 4);
}

struct Tile {
  int frame, pooled_y, pooled_x;  // of its first pooled position

  __device__ __forceinline__ explicit Tile(const StemMaxPoolArgs& p) {
    const int across = (p.pooled_w + kPoolW - 1) / kPoolW;
    frame = blockIdx.y;
    pooled_y = blockIdx.x / across * kPoolH, pooled_x = blockIdx.x % across * kPoolW;
  }
  // the convolution's position at row, column of the tile
  __device__ __forceinline__ int ConvY(int row) const { return 2 * pooled_y - 1 + row; }
  __device__ __forceinline__ int ConvX(int column) const { return 2 * pooled_x - 1 + column; }
};

__device__ __forceinline__ void CopyWeights(const void* weight, uint32_t to) {
  constexpr int kRowVectors = kKTiles * kStageVectors;
  for (int i = threadIdx.x; i < kOutChannels * kRowVectors; i += kThreads) {
    const int row = i / kRowVectors, vector = i % kRowVectors;
    CopyAsync16(Swizzled(to + vector / kStageVectors * kKTileBytes, row, vector % kStageVectors),
                static_cast<const uint8_t*>(weight) + i * 16, true);
  }
}

__device__ __forceinline__ void CopyPixels(const ConvArgs& a, const Tile& tile, uint32_t to) {
  const ConvShape& s = a.shape;
  const auto* x = static_cast<const uint8_t*>(a.x) +
                  static_cast<size_t>(tile.frame) * s.in_h * s.in_w * kPixelBytes;
  for (int i = threadIdx.x; i < kPixelsH * kPixelsW * kHalves; i += kThreads) {
    const int pixel = i / kHalves, half = i % kHalves;
    const int iy = tile.ConvY(pixel / kPixelsW) - kPad, ix = tile.ConvX(pixel % kPixelsW) - kPad;
    const bool inside = iy >= 0 && iy < s.in_h && ix >= 0 && ix < s.in_w;
    CopyAsync16(PixelAt(to, pixel, half),
                x + (inside ? (iy * s.in_w + ix) * kPixelBytes + half * 16 : 0), inside);
  }
}

// 64 positions from `position0` on, all taps.
template <Format F>
__device__ __forceinline__ void Multiply(float (&acc)[32], uint32_t pixels, uint32_t weights,
                                         int position0) {
  constexpr int kAtOnce = 8;  // taps whose pixels wait in registers
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32 % 4;
  const int position = min(position0 + warp * 16 + (lane & 15), kPositions - 1);
  const int pixel = position / kConvW * kPixelsW + position % kConvW;
  uint32_t a[kTaps * kTaps / kAtOnce][kAtOnce][4];
#pragma unroll
  for (int part = 0; part < kTaps * kTaps / kAtOnce; ++part) {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int tap = part * kAtOnce + i;
      LoadMatrix4(a[part][i],
                  PixelAt(pixels, pixel + tap / kTaps * kPixelsW + tap % kTaps, lane >> 4));
    }
    BeginWgmma();
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int tap = part * kAtOnce + i;
      Wgmma<F>(acc, a[part][i],
               WgmmaTile(weights + tap / kStepsOfKTile * kKTileBytes + tap % kStepsOfKTile * 32));
    }
    CommitWgmma();
  }
  WaitWgmma<0>();
}

// The sums of 64 positions with bias and ReLU to the map in shared memory; zeros outside the
// convolution's own map, which no maximum of ReLUs sees.
template <typename T>
__device__ __forceinline__ void StorePositions(const ConvArgs& a, const Tile& tile,
                                               const float (&acc)[32], uint8_t* map,
                                               int position0) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32 % 4, column = 2 * (lane & 3);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int position = position0 + warp * 16 + (lane >> 2) + r * 8;
    if (position >= kPositions) continue;
    const int y = tile.ConvY(position / kConvW), x = tile.ConvX(position % kConvW);
    const bool inside = y >= 0 && y < a.shape.out_h && x >= 0 && x < a.shape.out_w;
#pragma unroll
    for (int j = 0; j < kOutChannels / 8; ++j) {
      float2 b = make_float2(0, 0);
      if (a.bias != nullptr) b = *reinterpret_cast<const float2*>(a.bias + j * 8 + column);
      const float low = inside ? fmaxf(acc[4 * j + 2 * r] + b.x, 0.0f) : 0.0f;
      const float high = inside ? fmaxf(acc[4 * j + 2 * r + 1] + b.y, 0.0f) : 0.0f;
      Pack<T, 2> two;
      two.v[0] = FromFloat<T>(low), two.v[1] = FromFloat<T>(high);
      *reinterpret_cast<Pack<T, 2>*>(map + position * kMapPitch + (j * 8 + column) * 2) = two;
    }
  }
}

template <typename T>
__device__ __forceinline__ void StorePooled(const StemMaxPoolArgs& p, const Tile& tile,
                                            const uint8_t* map) {
  constexpr int kVectors = kOutChannels / kVector;
  for (int i = threadIdx.x; i < kPoolH * kPoolW * kVectors; i += kThreads) {
    const int row = i / kVectors / kPoolW, column = i / kVectors % kPoolW, vector = i % kVectors;
    const int y = tile.pooled_y + row, x = tile.pooled_x + column;
    if (y >= p.pooled_h || x >= p.pooled_w) continue;
    float best[kVector] = {};  // of ReLUs
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
      const int position = (2 * row + tap / 3) * kConvW + 2 * column + tap % 3;
      const auto values =
          *reinterpret_cast<const Pack<T, kVector>*>(map + position * kMapPitch + vector * 16);
#pragma unroll
      for (int e = 0; e < kVector; ++e) best[e] = fmaxf(best[e], ToFloat(values.v[e]));
    }
    Pack<T, kVector> out;
#pragma unroll
    for (int e = 0; e < kVector; ++e) out.v[e] = FromFloat<T>(best[e]);
    const size_t at = (static_cast<size_t>(tile.frame) * p.pooled_h + y) * p.pooled_w + x;
    reinterpret_cast<Pack<T, kVector>*>(p.y)[at * kVectors + vector] = out;
  }
}

// grid: (tiles of a frame, frames)
template <Format F>
__global__ void __launch_bounds__(kThreads, 2) StemMaxPoolKernel(const StemMaxPoolArgs p) {
  if constexpr (!kHaveWgmma) return Trap();
  using T = Storage<F>;
  extern __shared__ uint8_t shared[];
  const uint32_t skip = (kTileAlignment - SharedAddress(shared) % kTileAlignment) % kTileAlignment;
  const uint32_t weights = SharedAddress(shared) + skip, pixels = weights + kWeightBytes;
  uint8_t* map = shared + skip + kWeightBytes + kPixelsBytes;
  const Tile tile(p);
  CopyWeights(p.conv.weight, weights);  // nobody before writes them
  ReleaseSuccessor();
  WaitForPredecessor();
  CopyPixels(p.conv, tile, pixels);
  CommitCopies();
  WaitCopies<0>();
  FenceAsyncProxy();
  __syncthreads();
  constexpr int kWarpgroups = kThreads / kWarpgroup;
  for (int i = threadIdx.x / kWarpgroup; i < kTiles; i += kWarpgroups) {
    float acc[32] = {};
    Multiply<F>(acc, pixels, weights, i * kTile);
    StorePositions<T>(p.conv, tile, acc, map, i * kTile);
  }
  __syncthreads();
  StorePooled<T>(p, tile, map);
}

template <Format F>
void LaunchFormat(const StemMaxPoolArgs& p, cudaStream_t stream) {
  AllowShared(StemMaxPoolKernel<F>, kSharedBytes, "shared memory of the stem");
  LaunchShape shape;
  shape.grid = dim3((p.pooled_h + kPoolH - 1) / kPoolH * ((p.pooled_w + kPoolW - 1) / kPoolW),
                    p.conv.shape.batch);
  shape.block = dim3(kThreads);
  shape.shared_bytes = kSharedBytes;
  Launch(StemMaxPoolKernel<F>, shape, stream, "stem and max-pool", p);
}

}  // namespace

bool StemMaxPoolSupports(Format format, const ConvArgs& conv) {
  constexpr int kMostFrames = 65535;  // of a grid
  const ConvShape& s = conv.shape;
  return FormatBytes(format) == 2 && s.in_c == kInChannels && s.out_c == kOutChannels &&
         s.kernel_h == kTaps && s.kernel_w == kTaps && s.stride == 1 && s.pad_h == kPad &&
         s.pad_w == kPad && s.first_c == 0 && !s.upsample2x && s.phases == 1 && conv.relu &&
         conv.residual == nullptr && conv.row_bias == nullptr &&
         conv.activation == TokenActivation::kNone && !conv.y_fp32 && s.batch <= kMostFrames &&
         GpuTraits::Current().Wgmma();
}

void LaunchStemMaxPool(Format format, const StemMaxPoolArgs& args, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(args, stream);
  LaunchFormat<Format::kBf16>(args, stream);
}

}  // namespace mjp
