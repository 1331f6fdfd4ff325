// y[n][m] = bias[m] + sum_k x[n][k] w[m][k] for many positions n: bound by arithmetic.
//
// A block makes BM positions x BN out channels. All its threads feed a ring of shared-memory stages
// of 64 k (cp.async: gathered activations, packed weights) and its warpgroups multiply straight
// from there (wgmma, 64 x BN x 16), one stage in flight while later ones are copied. Few tiles: the
// blocks of a cluster split k, and each sums a slice of the positions in the order of the ranks.
// Bytes from L2 per stage: (BM + BN) x 128 for BM x BN x 64 products: bound by them at 7 TB/s where
// positions are many. Where they are some hundreds, latency is the bound: tiles of 64 x 64 by one
// warpgroup are enough to fill the GPU, and a deep ring hides about 1 us of L2. Two or three such
// blocks share a multiprocessor, so that the next launch's weights arrive while this one ends.

#include <algorithm>

#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/conv/implicit_gemm_wgmma.cuh"
#include "kernels/cuda/conv/wgmma_tile.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace mjp {
namespace {

constexpr int kPerVector = 8;  // elements of 16 bits
constexpr int kMaxSplit = 4;

template <int BM, int BN, int kStages, bool kOfTransformer>
struct WgmmaConvTile {
  static constexpr int kWarpgroups = BM >= 128 ? 2 : 1, kThreads = kWarpgroups * kWarpgroup;
  static constexpr int kRowsPerPass = kThreads / kStageVectors;  // of one round of copies
  static constexpr int kMTiles = BM / 64 / kWarpgroups;          // of 64 positions, per warpgroup
  static constexpr int kStageBytes = (BM + BN) * kRowBytes;
  static constexpr int kSumPitch = BN + 8;  // floats; the fragments' writes meet no bank twice
  static constexpr size_t kSharedBytes =
      kTileAlignment +
      std::max<size_t>(size_t{kStages} * kStageBytes, sizeof(float) * BM * kSumPitch);
  static constexpr int kFit = kSharedBytes <= 75 * 1024 ? 3 : kSharedBytes <= 113 * 1024 ? 2 : 1;
  // activations take more registers than a third of them
  static constexpr int kBlocksPerMultiprocessor =
      std::min(kFit, kWarpgroups == 2 && kOfTransformer ? 2 : 3);
  static_assert(BM % (64 * kWarpgroups) == 0 && kStages >= 3);
};

// One stage: 64 of k of this warpgroup's positions times all of the block's out channels.
template <Format F, int BN, int kMTiles>
__device__ __forceinline__ void MultiplyStage(float (&acc)[kMTiles][BN / 2], uint32_t positions,
                                              uint32_t weights) {
  BeginWgmma();
#pragma unroll
  for (int step = 0; step < kStageVectors / 2; ++step) {
    const uint64_t b = WgmmaTile(weights + step * 32);
#pragma unroll
    for (int i = 0; i < kMTiles; ++i)
      Wgmma<F>(acc[i], WgmmaTile(positions + i * 64 * kRowBytes + step * 32), b);
  }
  CommitWgmma();
}

// Asks L2 for an out channel's weights in the stages [first, last).
__device__ __forceinline__ void PrefetchWeights(const WgmmaConvArgs& p, int phase, int m, int first,
                                                int last) {
  const size_t row = static_cast<size_t>(phase) * p.padded_m + m;
  PrefetchBytes(static_cast<const uint8_t*>(p.a.weight) + (row * p.k_tiles + first) * kRowBytes,
                (last - first) * kRowBytes);
}

// grid: (tiles of positions, tiles of out channels x phases, split_k)
template <Format F, int BM, int BN, int kStages, bool kOfTransformer>
__global__ void __launch_bounds__(
    (WgmmaConvTile<BM, BN, kStages, kOfTransformer>::kThreads),
    (WgmmaConvTile<BM, BN, kStages, kOfTransformer>::kBlocksPerMultiprocessor))
    WgmmaConvKernel(const WgmmaConvArgs p) {
  if constexpr (!kHaveWgmma) return Trap();
  using C = WgmmaConvTile<BM, BN, kStages, kOfTransformer>;
  using T = Storage<F>;
  extern __shared__ uint8_t shared[];
  const uint32_t skip = (kTileAlignment - SharedAddress(shared) % kTileAlignment) % kTileAlignment;
  const uint32_t ring = SharedAddress(shared) + skip;
  const ConvShape& s = p.a.shape;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, group = tid / kWarpgroup;
  const int n_tiles = s.out_c / BN;
  const int phase = blockIdx.y / n_tiles, m0 = blockIdx.y % n_tiles * BN, n0 = blockIdx.x * BM;
  const int first = p.k_tiles * blockIdx.z / p.split_k;
  const int last = p.k_tiles * (blockIdx.z + 1) / p.split_k;

  const int vector = tid % kStageVectors, row0 = tid / kStageVectors;
  const int c_vectors = s.in_c / kPerVector, first_vectors = s.first_c / kPerVector;
  const size_t weight_pitch = static_cast<size_t>(p.k_tiles) * kRowBytes;
  const uint8_t* weight = static_cast<const uint8_t*>(p.a.weight) +
                          (static_cast<size_t>(phase) * p.padded_m + m0 + row0) * weight_pitch +
                          static_cast<size_t>(first) * kRowBytes + vector * 16;
  GatherRow rows[BM / C::kRowsPerPass];
#pragma unroll
  for (int i = 0; i < BM / C::kRowsPerPass; ++i)
    rows[i] = MakeGatherRow(s, n0 + row0 + i * C::kRowsPerPass, s.pad_w - phase);
  KCursor cursor;
  cursor.Start(first * kStageVectors + vector, c_vectors, s.kernel_w);

  auto load_weights = [&](int slot) {
    const uint32_t to = ring + slot * C::kStageBytes + BM * kRowBytes;
#pragma unroll
    for (int i = 0; i < BN / C::kRowsPerPass; ++i)
      CopyAsync16(Swizzled(to, row0 + i * C::kRowsPerPass, vector),
                  weight + i * C::kRowsPerPass * weight_pitch, true);
    weight += kRowBytes;
  };
  auto load_positions = [&](int slot) {
    const uint32_t to = ring + slot * C::kStageBytes;
    const bool second = s.first_c > 0 && cursor.c >= first_vectors;
    const T* x = static_cast<const T*>(second ? p.a.x2 : p.a.x);
    const int channels = s.first_c == 0 ? s.in_c : second ? s.in_c - s.first_c : s.first_c;
    x += (second ? cursor.c - first_vectors : cursor.c) * kPerVector;
#pragma unroll
    for (int i = 0; i < BM / C::kRowsPerPass; ++i) {
      size_t pixel;
      const bool inside = GatherPixel(s, rows[i], cursor, pixel);
      CopyAsync16(Swizzled(to, row0 + i * C::kRowsPerPass, vector), x + pixel * channels, inside);
    }
    cursor.Advance(c_vectors, s.kernel_w);
  };

  // weights do not depend on the kernel before: the ring's come now, the others to L2
  for (int i = 0; i < kStages - 2 && first + i < last; ++i) load_weights(i);
  if (blockIdx.x == 0 && tid < BN) PrefetchWeights(p, phase, m0 + tid, first, last);
  ReleaseSuccessor();
  WaitForPredecessor();
  for (int i = 0; i < kStages - 2; ++i) {
    if (first + i < last) load_positions(i);
    CommitCopies();
  }
  float acc[C::kMTiles][BN / 2] = {};
  for (int tile = first, slot = 0; tile < last; ++tile) {
    WaitCopies<kStages - 3>();
    FenceAsyncProxy();
    __syncthreads();
    const uint32_t stage = ring + slot * C::kStageBytes;
    MultiplyStage<F, BN>(acc, stage + group * C::kMTiles * 64 * kRowBytes, stage + BM * kRowBytes);
    // the slot of two stages ago: every warpgroup has waited for its products
    const int next = slot >= 2 ? slot - 2 : slot + kStages - 2;
    if (tile + kStages - 2 < last) {
      load_weights(next);
      load_positions(next);
    }
    CommitCopies();
    WaitWgmma<1>();
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }
  WaitWgmma<0>();
  WaitCopies<0>();
  __syncthreads();

  float* sums = reinterpret_cast<float*>(shared + skip);
  const int row = group * C::kMTiles * 64 + (warp & 3) * 16 + (lane >> 2);
#pragma unroll
  for (int i = 0; i < C::kMTiles; ++i) StoreSums<C::kSumPitch>(sums, row + i * 64, acc[i]);
  if (p.split_k > 1) {
    ClusterBarrier();
  } else {
    __syncthreads();
  }
  RunWgmmaEpilogue<WgmmaEpilogue<kOfTransformer, T, C::kThreads, BM, BN, C::kSumPitch, kMaxSplit>>(
      p, ring, n0, m0, phase, {static_cast<int>(blockIdx.z)});
  // the others may still read this block's sums
  if (p.split_k > 1) ClusterBarrier();
}

template <Format F, int BM, int BN, int kStages, bool kOfTransformer>
void LaunchKernel(const WgmmaConvArgs& p, cudaStream_t stream) {
  using C = WgmmaConvTile<BM, BN, kStages, kOfTransformer>;
  const auto kernel = WgmmaConvKernel<F, BM, BN, kStages, kOfTransformer>;
  AllowShared(kernel, C::kSharedBytes, "shared memory of the convolution by wgmma");
  const ConvShape& s = p.a.shape;
  LaunchShape shape;
  shape.grid = dim3((s.Positions() + BM - 1) / BM, s.out_c / BN * s.phases, p.split_k);
  shape.block = dim3(C::kThreads);
  shape.shared_bytes = C::kSharedBytes;
  shape.cluster_z = p.split_k;
  Launch(kernel, shape, stream, "convolution by wgmma", p);
}

template <Format F, int BM, int BN, int kStages>
void LaunchTile(const WgmmaConvArgs& p, cudaStream_t stream) {
  IsOfTransformer(p.a) ? LaunchKernel<F, BM, BN, kStages, true>(p, stream)
                       : LaunchKernel<F, BM, BN, kStages, false>(p, stream);
}

template <Format F>
void LaunchFormat(const WgmmaConvConfig& config, const WgmmaConvArgs& p, cudaStream_t stream) {
  if (config.block_m == 256) return LaunchTile<F, 256, 128, 4>(p, stream);
  if (config.block_n == 128)
    return config.stages == 6 ? LaunchTile<F, 128, 128, 6>(p, stream)
                              : LaunchTile<F, 128, 128, 3>(p, stream);
  if (config.block_m == 128) return LaunchTile<F, 128, 64, 3>(p, stream);
  config.stages == 6 ? LaunchTile<F, 64, 64, 6>(p, stream) : LaunchTile<F, 64, 64, 4>(p, stream);
}

int KTiles(const ConvShape& s) {
  const int per_stage = kStageVectors * kPerVector;
  return (s.K() + per_stage - 1) / per_stage;
}

// Measured on an H100, microseconds: of a stage, where a block has its multiprocessor for itself
// and where as many as fit share it, and of a block besides its stages.
struct MeasuredTile {
  int block_m, block_n, stages, fit;
  double alone, shared, overhead;
};
constexpr MeasuredTile kMeasuredTiles[] = {
    {256, 128, 4, 1, 1.05, 1.05, 8.5}, {128, 128, 6, 1, 0.6, 0.6, 4},
    {128, 128, 3, 2, 1.0, 1.3, 3.5},   {128, 64, 3, 3, 0.8, 1.4, 3},
    {64, 64, 6, 2, 0.29, 0.41, 2.5},   {64, 64, 4, 3, 0.36, 0.62, 2.5},
};
// And of a cluster of so many blocks, which split k.
constexpr double kClusterTime[] = {0, 0, 0.8, 0, 2.7};

int CeilDivide(int a, int b) { return (a + b - 1) / b; }

double MeasuredTime(const MeasuredTile& tile, const ConvShape& s, int split) {
  const int blocks =
      CeilDivide(s.Positions(), tile.block_m) * (s.out_c / tile.block_n) * s.phases * split;
  const int slots = GpuTraits::Hopper().MultiprocessorsInClusters(split);
  const int neighbours = std::min(tile.fit, CeilDivide(blocks, slots)) - 1;
  const double stage =
      tile.alone + (tile.fit == 1 ? 0 : (tile.shared - tile.alone) * neighbours / (tile.fit - 1));
  return CeilDivide(blocks, slots * tile.fit) *
         (CeilDivide(KTiles(s), split) * stage + tile.overhead + kClusterTime[split]);
}

struct Choice {
  WgmmaConvConfig config;
  double time = 0;
};

Choice Choose(const ConvShape& s) {
  constexpr int kLeastStages = 4;  // of a block, where k is split
  Choice best;
  for (const MeasuredTile& tile : kMeasuredTiles) {
    if (s.out_c % tile.block_n != 0) continue;
    for (int split = 1; split <= kMaxSplit; split *= 2) {
      if (split > 1 && CeilDivide(KTiles(s), split) < kLeastStages) break;
      const double time = MeasuredTime(tile, s, split);
      if (best.time > 0 && time >= best.time) continue;
      best = {{tile.block_m, tile.block_n, tile.stages, split}, time};
    }
  }
  return best;
}

}  // namespace

WgmmaConvConfig ChooseWgmmaConvConfig(const ConvShape& s) { return Choose(s).config; }

double MeasuredWgmmaConvTime(const ConvShape& s) { return Choose(s).time; }

bool WgmmaConvSupports(Format format, const ConvArgs& args) {
  // fewer are the general kernel's
  constexpr int kLeastPositions = 256, kLeastTokens = 33;
  const ConvShape& s = args.shape;
  return FormatBytes(format) == 2 && !args.y_fp32 && s.out_c % 64 == 0 &&
         s.Positions() >= (s.IsLinear() ? kLeastTokens : kLeastPositions) &&
         GpuTraits::Current().Wgmma();
}

void LaunchWgmmaConv(Format format, const ConvArgs& args, cudaStream_t stream) {
  const WgmmaConvConfig config = ChooseWgmmaConvConfig(args.shape);
  const WgmmaConvArgs p = {args, KTiles(args.shape), args.shape.out_c, config.split_k};
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(config, p, stream);
  LaunchFormat<Format::kBf16>(config, p, stream);
}

}  // namespace mjp
