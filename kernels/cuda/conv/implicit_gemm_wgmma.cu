// y[n][m] = bias[m] + sum_k x[n][k] w[m][k] for many positions n: bound by arithmetic.
//
// A block makes BM positions x BN out channels. All its threads feed a ring of shared-memory stages
// of 64 k (cp.async: gathered activations, packed weights) and two warpgroups multiply straight
// from there (wgmma, 64 x BN x 16), one stage in flight while the next is copied. Few tiles: the
// blocks of a cluster split k, and each sums a slice of the positions in the order of the ranks.
// Bytes from L2 per stage: (BM + BN) x 128 for BM x BN x 64 products: bound by them at 7 TB/s. A
// block that has its multiprocessor for itself needs a deep ring to hide their latency of about 1
// us.

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

template <int BM, int BN, int kStages>
struct WgmmaConvTile {
  static constexpr int kMTiles = BM / 128;  // of 64 positions, per warpgroup
  static constexpr int kStageBytes = (BM + BN) * kRowBytes;
  static constexpr int kSumPitch = BN + 8;  // floats; the fragments' writes meet no bank twice
  static constexpr size_t kSharedBytes =
      kTileAlignment +
      std::max<size_t>(size_t{kStages} * kStageBytes, sizeof(float) * BM * kSumPitch);
  static constexpr int kBlocksPerMultiprocessor = kSharedBytes <= 75 * 1024    ? 3
                                                  : kSharedBytes <= 113 * 1024 ? 2
                                                                               : 1;
  static_assert(BM % 128 == 0 && kStages >= 3);
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

// grid: (tiles of positions, tiles of out channels x phases, split_k)
template <Format F, int BM, int BN, int kStages, bool kOfTransformer>
__global__ void __launch_bounds__(kWgmmaConvThreads,
                                  (WgmmaConvTile<BM, BN, kStages>::kBlocksPerMultiprocessor))
    WgmmaConvKernel(const WgmmaConvArgs p) {
  if constexpr (!kHaveWgmma) return Trap();
  using C = WgmmaConvTile<BM, BN, kStages>;
  using T = Storage<F>;
  extern __shared__ uint8_t shared[];
  const uint32_t skip = (kTileAlignment - SharedAddress(shared) % kTileAlignment) % kTileAlignment;
  const uint32_t ring = SharedAddress(shared) + skip;
  const ConvShape& s = p.a.shape;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, group = tid / 128;
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
  GatherRow rows[BM / kWgmmaRowsPerPass];
#pragma unroll
  for (int i = 0; i < BM / kWgmmaRowsPerPass; ++i)
    rows[i] = MakeGatherRow(s, n0 + row0 + i * kWgmmaRowsPerPass, s.pad_w - phase);
  KCursor cursor;
  cursor.Start(first * kStageVectors + vector, c_vectors, s.kernel_w);

  auto load_weights = [&](int slot) {
    const uint32_t to = ring + slot * C::kStageBytes + BM * kRowBytes;
#pragma unroll
    for (int i = 0; i < BN / kWgmmaRowsPerPass; ++i)
      CopyAsync16(Swizzled(to, row0 + i * kWgmmaRowsPerPass, vector),
                  weight + i * kWgmmaRowsPerPass * weight_pitch, true);
    weight += kRowBytes;
  };
  auto load_positions = [&](int slot) {
    const uint32_t to = ring + slot * C::kStageBytes;
    const bool second = s.first_c > 0 && cursor.c >= first_vectors;
    const T* x = static_cast<const T*>(second ? p.a.x2 : p.a.x);
    const int channels = s.first_c == 0 ? s.in_c : second ? s.in_c - s.first_c : s.first_c;
    x += (second ? cursor.c - first_vectors : cursor.c) * kPerVector;
#pragma unroll
    for (int i = 0; i < BM / kWgmmaRowsPerPass; ++i) {
      size_t pixel;
      const bool inside = GatherPixel(s, rows[i], cursor, pixel);
      CopyAsync16(Swizzled(to, row0 + i * kWgmmaRowsPerPass, vector), x + pixel * channels, inside);
    }
    cursor.Advance(c_vectors, s.kernel_w);
  };

  // weights do not depend on the kernel before
  for (int i = 0; i < kStages - 2 && first + i < last; ++i) load_weights(i);
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
  const int row = group * C::kMTiles * 64 + (warp & 3) * 16 + (lane >> 2), column = 2 * (lane & 3);
#pragma unroll
  for (int i = 0; i < C::kMTiles; ++i)
#pragma unroll
    for (int q = 0; q < BN / 2; q += 2)
      *reinterpret_cast<float2*>(sums + (row + i * 64 + (q & 2) * 4) * C::kSumPitch + q / 4 * 8 +
                                 column) = make_float2(acc[i][q], acc[i][q + 1]);
  if (p.split_k > 1) {
    ClusterBarrier();
  } else {
    __syncthreads();
  }
  RunWgmmaEpilogue<kOfTransformer, T, BM, BN, C::kSumPitch, kMaxSplit>(p, ring, n0, m0, phase);
  // the others may still read this block's sums
  if (p.split_k > 1) ClusterBarrier();
}

template <Format F, int BM, int BN, int kStages, bool kOfTransformer>
void LaunchKernel(const WgmmaConvArgs& p, cudaStream_t stream) {
  using C = WgmmaConvTile<BM, BN, kStages>;
  const auto kernel = WgmmaConvKernel<F, BM, BN, kStages, kOfTransformer>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kSharedBytes);
  CheckCuda(allowed, "shared memory of the convolution by wgmma");
  const ConvShape& s = p.a.shape;
  LaunchShape shape;
  shape.grid = dim3((s.Positions() + BM - 1) / BM, s.out_c / BN * s.phases, p.split_k);
  shape.block = dim3(kWgmmaConvThreads);
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
    return config.one_cta_per_sm ? LaunchTile<F, 128, 128, 6>(p, stream)
                                 : LaunchTile<F, 128, 128, 3>(p, stream);
  config.one_cta_per_sm ? LaunchTile<F, 128, 64, 8>(p, stream)
                        : LaunchTile<F, 128, 64, 3>(p, stream);
}

int KTiles(const ConvShape& s) {
  const int per_stage = kStageVectors * kPerVector;
  return (s.K() + per_stage - 1) / per_stage;
}

}  // namespace

WgmmaConvConfig ChooseWgmmaConvConfig(const ConvShape& s, const GpuTraits& gpu) {
  // measured on an H200, microseconds: of a stage, and of a block besides its stages
  struct Candidate {
    int block_m, block_n;
    double stage, overhead;
  };
  constexpr Candidate kCandidates[] = {
      {256, 128, 0.88, 8}, {128, 128, 0.58, 5}, {128, 64, 0.44, 4}};
  constexpr double kSplitTime = 2;
  WgmmaConvConfig best = {0, 0, 1, false};
  double best_time = 0;
  for (const Candidate& c : kCandidates) {
    if (s.out_c % c.block_n != 0) continue;
    const int tiles =
        (s.Positions() + c.block_m - 1) / c.block_m * (s.out_c / c.block_n) * s.phases;
    for (int split = 1; split <= kMaxSplit; split *= 2) {
      const int stages = (KTiles(s) + split - 1) / split;
      if (split > 1 && stages < 4) break;
      const int slots = gpu.MultiprocessorsInClusters(split),
                waves = (tiles * split + slots - 1) / slots;
      // where several blocks share a multiprocessor, one multiplies while another begins or ends
      const double overhead = waves > 1 && c.block_m < 256 ? c.overhead / 4 : c.overhead;
      const double time = waves * (stages * c.stage + overhead + (split > 1 ? kSplitTime : 0));
      if (best.block_m == 0 || time < best_time) {
        best = {c.block_m, c.block_n, split, waves == 1};
        best_time = time;
      }
    }
  }
  return best;
}

bool WgmmaConvSupports(Format format, const ConvArgs& args) {
  constexpr int kFewPositions = 512;
  const ConvShape& s = args.shape;
  return (format == Format::kFp16 || format == Format::kBf16) && !args.y_fp32 &&
         s.Positions() >= kFewPositions && s.out_c % 64 == 0 && GpuTraits::Current().Wgmma();
}

void LaunchWgmmaConv(Format format, const ConvArgs& args, cudaStream_t stream) {
  const WgmmaConvConfig config = ChooseWgmmaConvConfig(args.shape, GpuTraits::Current());
  const WgmmaConvArgs p = {args, KTiles(args.shape), args.shape.out_c, config.split_k};
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(config, p, stream);
  LaunchFormat<Format::kBf16>(config, p, stream);
}

}  // namespace mjp
