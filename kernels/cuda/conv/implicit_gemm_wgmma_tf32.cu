// The convolution by wgmma of the 32-bit formats: y[n][m] = bias[m] + sum_k x[n][k] w[m][k].
//
// A block makes 128 positions x 64 out channels. Its threads feed a ring of shared-memory stages of
// 32 k (cp.async) and two warpgroups multiply: positions as fragments in registers, weights from
// shared memory (wgmma, 64 x 64 x 8, TF32). In fp32 every value is taken in two TF32 parts and
// three products are summed (the fourth is below 2^-22): a position's parts are made in registers,
// those of a weight in shared memory by the thread that copied it. The tensor cores cut sums
// instead of rounding them, so each stage is summed from zero and then added. Few tiles: the blocks
// of a cluster split k, and each sums a slice of the positions in the order of the ranks.
// Bytes from L2 per stage: 24 KB for 128 x 64 x 32 products.

#include <algorithm>

#include "kernels/cuda/conv/implicit_gemm_wgmma.cuh"
#include "kernels/cuda/conv/wgmma_tile.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace mjp {
namespace {

constexpr int kBlockM = 128, kBlockN = 64;  // positions, out channels
constexpr int kThreads = 2 * kWarpgroup, kRowsPerPass = kThreads / kStageVectors;
constexpr int kPerVector = 4;              // elements of 32 bits
constexpr int kSteps = kStageVectors / 2;  // of 8 k in a stage
constexpr int kSumPitch = kBlockN + 8;     // floats; the fragments' writes meet no bank twice
constexpr int kStageBytes = (kBlockM + kBlockN) * kRowBytes;
constexpr int kLowBytes = kBlockN * kRowBytes;  // the weights' lower parts in one stage

constexpr int kStages = 6;  // of the ring: one CTA per multiprocessor
constexpr int kMaxSplit = 8;

template <Format F>
struct Ring {
  static constexpr bool kParts = F == Format::kFp32;
  static constexpr size_t kSharedBytes =
      kTileAlignment + std::max<size_t>(kStages * kStageBytes + (kParts ? 2 * kLowBytes : 0),
                                        sizeof(float) * kBlockM * kSumPitch);
};

// Splits the weights of a stage that this thread copied.
__device__ __forceinline__ void SplitWeights(uint32_t weights, uint32_t low, int row0, int vector) {
#pragma unroll
  for (int i = 0; i < kBlockN / kRowsPerPass; ++i) {
    const int row = row0 + i * kRowsPerPass;
    uint32_t h[4], l[4];
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(h[0]), "=r"(h[1]), "=r"(h[2]), "=r"(h[3])
                 : "r"(Swizzled(weights, row, vector))
                 : "memory");
#pragma unroll
    for (int e = 0; e < 4; ++e) h[e] = SplitTf32(h[e], l[e]);
    StoreShared(Swizzled(weights, row, vector), make_uint4(h[0], h[1], h[2], h[3]));
    StoreShared(Swizzled(low, row, vector), make_uint4(l[0], l[1], l[2], l[3]));
  }
}

// Begins sum += one stage of this warpgroup's positions times the block's out channels. `row` is
// that of the warp's first position.
template <Format F>
__device__ __forceinline__ void MultiplyStage(float (&sum)[kBlockN / 2], uint32_t positions,
                                              int row, uint32_t weights, uint32_t low) {
  const int lane = threadIdx.x & 31;
  uint32_t a[kSteps][4], a_low[kSteps][4];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    LoadMatrix4(a[step], Swizzled(positions, row + (lane & 15), step * 2 + (lane >> 4)));
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      if constexpr (F == Format::kFp32) {
        a[step][q] = SplitTf32(a[step][q], a_low[step][q]);
      } else {
        a[step][q] = RoundTf32(a[step][q]);
      }
    }
  }
  BeginWgmma();
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    if constexpr (F == Format::kFp32) {
      WgmmaTf32(sum, a_low[step], WgmmaTile(weights + step * 32));
      WgmmaTf32(sum, a[step], WgmmaTile(low + step * 32));
    }
    WgmmaTf32(sum, a[step], WgmmaTile(weights + step * 32));
  }
  CommitWgmma();
}

// grid: (tiles of positions, tiles of out channels x phases, split_k)
template <Format F, bool kOfTransformer>
__global__ void __launch_bounds__(kThreads) WgmmaTf32ConvKernel(const WgmmaConvArgs p) {
  if constexpr (!kHaveWgmma) return Trap();
  extern __shared__ uint8_t shared[];
  const uint32_t skip = (kTileAlignment - SharedAddress(shared) % kTileAlignment) % kTileAlignment;
  const uint32_t ring = SharedAddress(shared) + skip, lows = ring + kStages * kStageBytes;
  const ConvShape& s = p.a.shape;
  const int tid = threadIdx.x, lane = tid & 31, warp_row = tid / 32 * 16;
  const int n_tiles = s.out_c / kBlockN;
  const int phase = blockIdx.y / n_tiles, m0 = blockIdx.y % n_tiles * kBlockN;
  const int n0 = blockIdx.x * kBlockM;
  const int first = p.k_tiles * blockIdx.z / p.split_k;
  const int last = p.k_tiles * (blockIdx.z + 1) / p.split_k;

  const int vector = tid % kStageVectors, row0 = tid / kStageVectors;
  const int c_vectors = s.in_c / kPerVector, first_vectors = s.first_c / kPerVector;
  const size_t weight_pitch = static_cast<size_t>(p.k_tiles) * kRowBytes;
  const uint8_t* weight = static_cast<const uint8_t*>(p.a.weight) +
                          (static_cast<size_t>(phase) * p.padded_m + m0 + row0) * weight_pitch +
                          static_cast<size_t>(first) * kRowBytes + vector * 16;
  GatherRow rows[kBlockM / kRowsPerPass];
#pragma unroll
  for (int i = 0; i < kBlockM / kRowsPerPass; ++i)
    rows[i] = MakeGatherRow(s, n0 + row0 + i * kRowsPerPass, s.pad_w - phase);
  KCursor cursor;
  cursor.Start(first * kStageVectors + vector, c_vectors, s.kernel_w);

  const auto weights_of = [&](int slot) { return ring + slot * kStageBytes + kBlockM * kRowBytes; };
  const auto load_weights = [&](int slot) {
#pragma unroll
    for (int i = 0; i < kBlockN / kRowsPerPass; ++i)
      CopyAsync16(Swizzled(weights_of(slot), row0 + i * kRowsPerPass, vector),
                  weight + i * kRowsPerPass * weight_pitch, true);
    weight += kRowBytes;
  };
  const auto load_positions = [&](int slot) {
    const bool second = s.first_c > 0 && cursor.c >= first_vectors;
    const float* x = static_cast<const float*>(second ? p.a.x2 : p.a.x);
    const int channels = s.first_c == 0 ? s.in_c : second ? s.in_c - s.first_c : s.first_c;
    x += (second ? cursor.c - first_vectors : cursor.c) * kPerVector;
#pragma unroll
    for (int i = 0; i < kBlockM / kRowsPerPass; ++i) {
      size_t pixel;
      const bool inside = GatherPixel(s, rows[i], cursor, pixel);
      CopyAsync16(Swizzled(ring + slot * kStageBytes, row0 + i * kRowsPerPass, vector),
                  x + pixel * channels, inside);
    }
    cursor.Advance(c_vectors, s.kernel_w);
  };
  // once this thread's copies of a stage are there
  const auto prepare = [&](int tile, int slot) {
    if (Ring<F>::kParts && tile < last)
      SplitWeights(weights_of(slot), lows + (tile & 1) * kLowBytes, row0, vector);
    FenceAsyncProxy();
  };

  // weights do not depend on the kernel before
  for (int i = 0; i < kStages - 1 && first + i < last; ++i) load_weights(i);
  ReleaseSuccessor();
  WaitForPredecessor();
  for (int i = 0; i < kStages - 1; ++i) {
    if (first + i < last) load_positions(i);
    CommitCopies();
  }
  WaitCopies<kStages - 2>();
  prepare(first, 0);
  __syncthreads();
  float acc[kBlockN / 2] = {};
  for (int tile = first, slot = 0; tile < last; ++tile) {
    float sum[kBlockN / 2] = {};
    MultiplyStage<F>(sum, ring + slot * kStageBytes, warp_row, weights_of(slot),
                     lows + (tile & 1) * kLowBytes);
    // the slot of the stage before: both warpgroups have waited for its products
    const int before = slot == 0 ? kStages - 1 : slot - 1;
    if (tile + kStages - 1 < last) {
      load_weights(before);
      load_positions(before);
    }
    CommitCopies();
    slot = slot + 1 == kStages ? 0 : slot + 1;
    WaitCopies<kStages - 2>();
    prepare(tile + 1, slot);
    WaitWgmma<0>();
#pragma unroll
    for (int q = 0; q < kBlockN / 2; ++q) acc[q] += sum[q];
    __syncthreads();
  }
  WaitCopies<0>();
  __syncthreads();

  float* sums = reinterpret_cast<float*>(shared + skip);
  StoreSums<kSumPitch>(sums, warp_row + (lane >> 2), acc);
  if (p.split_k > 1) {
    ClusterBarrier();
  } else {
    __syncthreads();
  }
  RunWgmmaEpilogue<
      WgmmaEpilogue<kOfTransformer, float, kThreads, kBlockM, kBlockN, kSumPitch, kMaxSplit>>(
      p, ring, n0, m0, phase, {static_cast<int>(blockIdx.z)});
  // the others may still read this block's sums
  if (p.split_k > 1) ClusterBarrier();
}

int KTiles(const ConvShape& s) {
  const int per_stage = kStageVectors * kPerVector;
  return (s.K() + per_stage - 1) / per_stage;
}

// Blocks that run at once, in clusters of `split`: a cluster stays within one of the parts of the
// GPU, of 16 or 18 multiprocessors.
int Slots(const GpuTraits& gpu, int split) {
  constexpr int kPart = 18, kPartInClusters = 16;
  return split <= 2 ? gpu.multiprocessors
                    : std::max(1, gpu.multiprocessors / kPart) * (kPartInClusters / split) * split;
}

// The split of k that ends first.
int SplitOf(const ConvShape& s, const GpuTraits& gpu) {
  // measured on an H200, microseconds: of a stage, of beginning and ending a block, of the cluster
  constexpr double kStage = 0.95, kOverhead = 5, kCluster = 2;
  constexpr int kFewStages = 4;
  const int tiles = (s.Positions() + kBlockM - 1) / kBlockM * (s.out_c / kBlockN) * s.phases;
  int best = 1;
  double best_time = 0;
  for (int split = 1; split <= kMaxSplit; ++split) {
    const int stages = (KTiles(s) + split - 1) / split;
    if (split > 1 && stages < kFewStages) break;
    const int waves = (tiles * split + Slots(gpu, split) - 1) / Slots(gpu, split);
    const double time = waves * (stages * kStage + kOverhead + (split > 1 ? kCluster : 0));
    if (split == 1 || time < best_time) best = split, best_time = time;
  }
  return best;
}

template <Format F, bool kOfTransformer>
void LaunchKernel(const WgmmaConvArgs& p, cudaStream_t stream) {
  constexpr size_t kSharedBytes = Ring<F>::kSharedBytes;
  const auto kernel = WgmmaTf32ConvKernel<F, kOfTransformer>;
  AllowShared(kernel, kSharedBytes, "shared memory of the convolution by wgmma");
  const ConvShape& s = p.a.shape;
  LaunchShape shape;
  shape.grid =
      dim3((s.Positions() + kBlockM - 1) / kBlockM, s.out_c / kBlockN * s.phases, p.split_k);
  shape.block = dim3(kThreads);
  shape.shared_bytes = kSharedBytes;
  shape.cluster_z = p.split_k;
  Launch(kernel, shape, stream, "convolution by wgmma", p);
}

template <Format F>
void LaunchFormat(const WgmmaConvArgs& p, cudaStream_t stream) {
  IsOfTransformer(p.a) ? LaunchKernel<F, true>(p, stream) : LaunchKernel<F, false>(p, stream);
}

}  // namespace

bool WgmmaTf32ConvSupports(Format format, const ConvArgs& args) {
  constexpr int kFewPositions = 512;
  const ConvShape& s = args.shape;
  return FormatBytes(format) == 4 && s.Positions() >= kFewPositions && s.out_c % kBlockN == 0 &&
         GpuTraits::Current().Wgmma();
}

void LaunchWgmmaTf32Conv(Format format, const ConvArgs& args, cudaStream_t stream) {
  const WgmmaConvArgs p = {args, KTiles(args.shape), args.shape.out_c,
                           SplitOf(args.shape, GpuTraits::Current())};
  if (format == Format::kFp32) return LaunchFormat<Format::kFp32>(p, stream);
  LaunchFormat<Format::kTf32>(p, stream);
}

}  // namespace mjp
