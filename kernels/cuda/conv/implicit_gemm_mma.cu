// y[n][m] = bias[m] + sum_k w[m][k] x[n][k]: n runs over positions (batch, oy, ox), m over out
// channels, k over (tap, in channel), channels fastest, so that 16 bytes of k are one load.
//
// A block makes a BM x BN tile: weights and gathered activations go through a ring of
// shared-memory stages of 128 bytes of k (cp.async, XOR swizzle on 16-byte vectors), warps multiply
// with mma.sync (fp32: three products of values in two TF32 parts). Where tiles
// are fewer than multiprocessors, the blocks of a cluster split k, and each sums one slice of the
// tile's positions over the others' shared memory in a fixed order: the same bits every time. Bytes
// moved: weights once per BN positions, activations once per BM channels.

#include <algorithm>

#include "kernels/cuda/conv/epilogue.cuh"
#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/conv/implicit_gemm_mma.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/ptx.cuh"

namespace mjp {
namespace {

constexpr int kStages = 3, kDeepStages = 5;  // deep: where few blocks share a multiprocessor

struct ConvKernelArgs {
  ConvArgs a;
  int k_tiles;   // stages of the whole k
  int padded_m;  // rows of the packed weights in one phase
  int split_k;
};

template <Format F, int BM, int BN, int kWarpsM, int kWarpsN, int kRing>
struct Tile {
  using T = Storage<F>;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kWarpM = BM / kWarpsM, kWarpN = BN / kWarpsN;
  static constexpr int kMi = kWarpM / 16, kNi = kWarpN / 8;
  static constexpr int kRowsPerPass = kThreads / kStageVectors;
  static constexpr int kARows = BM / kRowsPerPass;
  static constexpr int kBRows = (BN + kRowsPerPass - 1) / kRowsPerPass;
  static constexpr int kPerVector = 16 / sizeof(T);
  static constexpr int kStageBytes = (BM + BN) * kRowBytes;
  static constexpr int kSumPitch = BM + 4;  // floats; conflict-free for the fragment layout
  static constexpr size_t kSharedBytes =
      std::max<size_t>(size_t{kRing} * kStageBytes, sizeof(float) * BN * kSumPitch);
  static_assert(BM % kRowsPerPass == 0 && kWarpM % 16 == 0 && kWarpN % 16 == 0);
};

// acc += one stage of a (BM rows) times b (BN rows), both in shared memory: values in two parts,
// three products of them (the fourth is below 2^-22).
template <typename C>
__device__ __forceinline__ void MultiplyStageSplit(float (&acc)[C::kMi][C::kNi][4], uint32_t a,
                                                   uint32_t b, int warp_m, int warp_n, int lane) {
#pragma unroll
  for (int step = 0; step < kStageVectors / 2; ++step) {
    uint32_t a_high[C::kMi][4], a_low[C::kMi][4], b_high[C::kNi / 2][4], b_low[C::kNi / 2][4];
#pragma unroll
    for (int i = 0; i < C::kMi; ++i) {
      LoadMatrix4(a_high[i], Swizzled(a, warp_m + i * 16 + (lane & 15), step * 2 + (lane >> 4)));
#pragma unroll
      for (int q = 0; q < 4; ++q) a_high[i][q] = SplitTf32(a_high[i][q], a_low[i][q]);
    }
#pragma unroll
    for (int j = 0; j < C::kNi / 2; ++j) {
      const int row = warp_n + j * 16 + (lane & 7) + ((lane >> 4) << 3);
      LoadMatrix4(b_high[j], Swizzled(b, row, step * 2 + ((lane >> 3) & 1)));
#pragma unroll
      for (int q = 0; q < 4; ++q) b_high[j][q] = SplitTf32(b_high[j][q], b_low[j][q]);
    }
    const auto multiply = [&](const auto& x, const auto& y) {
#pragma unroll
      for (int i = 0; i < C::kMi; ++i)
#pragma unroll
        for (int j = 0; j < C::kNi; ++j)
          MultiplyAccumulate<Format::kTf32>(acc[i][j], x[i], y[j / 2][j % 2 * 2],
                                            y[j / 2][j % 2 * 2 + 1]);
    };
    multiply(a_low, b_high);
    multiply(a_high, b_low);
    multiply(a_high, b_high);
  }
}

template <Format F, typename C>
__device__ __forceinline__ void MultiplyStage(float (&acc)[C::kMi][C::kNi][4], uint32_t a,
                                              uint32_t b, int warp_m, int warp_n, int lane) {
#pragma unroll
  for (int step = 0; step < kStageVectors / 2; ++step) {
    uint32_t af[C::kMi][4];
#pragma unroll
    for (int i = 0; i < C::kMi; ++i)
      LoadMatrix4(af[i], Swizzled(a, warp_m + i * 16 + (lane & 15), step * 2 + (lane >> 4)));
#pragma unroll
    for (int j = 0; j < C::kNi; j += 2) {
      uint32_t bf[4];
      const int row = warp_n + j * 8 + (lane & 7) + ((lane >> 4) << 3);
      LoadMatrix4(bf, Swizzled(b, row, step * 2 + ((lane >> 3) & 1)));
      if constexpr (F == Format::kTf32) {
        for (uint32_t& r : bf) r = RoundTf32(r);
      }
#pragma unroll
      for (int i = 0; i < C::kMi; ++i) {
        MultiplyAccumulate<F>(acc[i][j], af[i], bf[0], bf[1]);
        MultiplyAccumulate<F>(acc[i][j + 1], af[i], bf[2], bf[3]);
      }
    }
  }
}

template <typename T>
__device__ __forceinline__ void StoreElement(const ConvArgs& a, size_t index, float sum) {
  if (a.residual)
    sum += a.y_fp32 ? static_cast<const float*>(a.residual)[index]
                    : ToFloat(static_cast<const T*>(a.residual)[index]);
  if (a.relu) sum = fmaxf(sum, 0.0f);
  if (a.y_fp32) {
    static_cast<float*>(a.y)[index] = sum;
  } else {
    static_cast<T*>(a.y)[index] = FromFloat<T>(sum);
  }
}

// The epilogue of this block's slice of the tile, whose sums it adds over the cluster.
template <typename C, int BM, int BN>
__device__ __forceinline__ void RunMmaEpilogue(const ConvKernelArgs& p, uint32_t sums, int m0,
                                               int n0, int phase) {
  using T = typename C::T;
  const ConvShape& s = p.a.shape;
  const int rank = p.split_k > 1 ? static_cast<int>(blockIdx.z) % p.split_k : 0;
  const int slice = BN / p.split_k;
  for (int i = threadIdx.x; i < slice * (BM / 4); i += C::kThreads) {
    const int row = rank * slice + i / (BM / 4), m = (i % (BM / 4)) * 4;
    const int n = n0 + row;
    if (n >= s.batch * s.out_h * s.out_w || m0 + m >= s.out_c) continue;
    const uint32_t address = sums + (row * C::kSumPitch + m) * 4;
    float4 v = LoadFromBlock(address, 0);
    for (int r = 1; r < p.split_k; ++r) {
      const float4 w = LoadFromBlock(address, r);
      v.x += w.x, v.y += w.y, v.z += w.z, v.w += w.w;
    }
    const float sum[4] = {v.x, v.y, v.z, v.w};
    const size_t out = (static_cast<size_t>(n) * s.phases + phase) * s.out_c + m0 + m;
    const float* row_bias = RowBias(p.a, n);
    for (int e = 0; e < 4 && m0 + m + e < s.out_c; ++e) {
      const float biased = sum[e] + (p.a.bias ? p.a.bias[m0 + m + e] : 0.0f);
      StoreElement<T>(p.a, out + e, AddBiasAndActivate(p.a, biased, row_bias, m0 + m + e));
    }
  }
}

// grid: (tiles of positions, tiles of out channels x phases, split_k)
template <Format F, int BM, int BN, int kWarpsM, int kWarpsN, int kRing>
__global__ void __launch_bounds__(32 * kWarpsM * kWarpsN) ConvKernel(const ConvKernelArgs p) {
  using C = Tile<F, BM, BN, kWarpsM, kWarpsN, kRing>;
  using T = typename C::T;
  extern __shared__ __align__(128) uint8_t shared[];
  const uint32_t ring = SharedAddress(shared);
  const ConvShape& s = p.a.shape;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int warp_m = (warp % kWarpsM) * C::kWarpM, warp_n = (warp / kWarpsM) * C::kWarpN;
  const int m_tiles = p.padded_m / BM;
  const int phase = blockIdx.y / m_tiles, m0 = (blockIdx.y % m_tiles) * BM, n0 = blockIdx.x * BN;
  const int first = p.k_tiles * blockIdx.z / p.split_k;
  const int last = p.k_tiles * (blockIdx.z + 1) / p.split_k;

  const int vector = tid % kStageVectors, row0 = tid / kStageVectors;
  const int c_vectors = s.in_c / C::kPerVector, first_vectors = s.first_c / C::kPerVector;
  const size_t weight_pitch = static_cast<size_t>(p.k_tiles) * kRowBytes;
  const uint8_t* weight = static_cast<const uint8_t*>(p.a.weight) +
                          (static_cast<size_t>(phase) * p.padded_m + m0 + row0) * weight_pitch +
                          static_cast<size_t>(first) * kRowBytes + vector * 16;
  GatherRow rows[C::kBRows];
  for (int i = 0; i < C::kBRows; ++i)
    rows[i] = MakeGatherRow(s, n0 + row0 + i * C::kRowsPerPass, s.pad_w - phase);
  KCursor cursor;
  cursor.Start(first * kStageVectors + vector, c_vectors, s.kernel_w);

  auto load_weights = [&](int slot) {
    const uint32_t a = ring + slot * C::kStageBytes;
#pragma unroll
    for (int i = 0; i < C::kARows; ++i)
      CopyAsync16(Swizzled(a, row0 + i * C::kRowsPerPass, vector),
                  weight + i * C::kRowsPerPass * weight_pitch, true);
    weight += kRowBytes;
  };
  auto load_positions = [&](int slot) {
    const uint32_t b = ring + slot * C::kStageBytes + BM * kRowBytes;
    const bool second = s.first_c > 0 && cursor.c >= first_vectors;
    const T* x = static_cast<const T*>(second ? p.a.x2 : p.a.x);
    const int channels = s.first_c == 0 ? s.in_c : second ? s.in_c - s.first_c : s.first_c;
    const int c = (second ? cursor.c - first_vectors : cursor.c) * C::kPerVector;
#pragma unroll
    for (int i = 0; i < C::kBRows; ++i) {
      if (BN < C::kRowsPerPass && row0 >= BN) break;
      size_t pixel;
      const bool inside = GatherPixel(s, rows[i], cursor, pixel);
      CopyAsync16(Swizzled(b, row0 + i * C::kRowsPerPass, vector), x + pixel * channels + c,
                  inside);
    }
    cursor.Advance(c_vectors, s.kernel_w);
  };

  // nobody before writes the weights
  for (int i = 0; i < kRing - 1 && first + i < last; ++i) load_weights(i);
  ReleaseSuccessor();
  WaitForPredecessor();
  for (int i = 0; i < kRing - 1; ++i) {
    if (first + i < last) load_positions(i);
    CommitCopies();
  }
  float acc[C::kMi][C::kNi][4] = {};
  for (int tile = first, slot = 0; tile < last; ++tile) {
    WaitCopies<kRing - 2>();
    __syncthreads();
    const int next = slot == 0 ? kRing - 1 : slot - 1;
    if (tile + kRing - 1 < last) load_weights(next), load_positions(next);
    CommitCopies();
    const uint32_t a = ring + slot * C::kStageBytes, b = a + BM * kRowBytes;
    if constexpr (sizeof(T) == 4) {
      // tensor cores cut their sums instead of rounding them: a stage is summed from zero
      float sum[C::kMi][C::kNi][4] = {};
      if constexpr (F == Format::kFp32) {
        MultiplyStageSplit<C>(sum, a, b, warp_m, warp_n, lane);
      } else {
        MultiplyStage<F, C>(sum, a, b, warp_m, warp_n, lane);
      }
#pragma unroll
      for (int i = 0; i < C::kMi; ++i)
#pragma unroll
        for (int j = 0; j < C::kNi; ++j)
#pragma unroll
          for (int q = 0; q < 4; ++q) acc[i][j][q] += sum[i][j][q];
    } else {
      MultiplyStage<F, C>(acc, a, b, warp_m, warp_n, lane);
    }
    slot = slot + 1 == kRing ? 0 : slot + 1;
  }
  WaitCopies<0>();
  __syncthreads();

  float* sums = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int i = 0; i < C::kMi; ++i)
#pragma unroll
    for (int j = 0; j < C::kNi; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        sums[(warp_n + j * 8 + 2 * (lane & 3) + (q & 1)) * C::kSumPitch + warp_m + i * 16 +
             (lane >> 2) + (q >> 1) * 8] = acc[i][j][q];
  if (p.split_k > 1) {
    ClusterBarrier();
  } else {
    __syncthreads();
  }
  RunMmaEpilogue<C, BM, BN>(p, ring, m0, n0, phase);
  // the others may still read this block's sums
  if (p.split_k > 1) ClusterBarrier();
}

int PaddedM(int out_c) { return (out_c + 63) / 64 * 64; }

int KTiles(Format format, const ConvShape& s) {
  const int per_stage = kRowBytes / static_cast<int>(FormatBytes(format));
  return (s.K() + per_stage - 1) / per_stage;
}

template <Format F, int BM, int BN, int kWarpsM, int kWarpsN, int kRing = kStages>
void LaunchTile(const ConvKernelArgs& p, cudaStream_t stream) {
  using C = Tile<F, BM, BN, kWarpsM, kWarpsN, kRing>;
  const auto kernel = ConvKernel<F, BM, BN, kWarpsM, kWarpsN, kRing>;
  AllowShared(kernel, C::kSharedBytes, "shared memory of the convolution");
  const ConvShape& s = p.a.shape;
  LaunchShape shape;
  shape.grid = dim3((s.Positions() + BN - 1) / BN, p.padded_m / BM * s.phases, p.split_k);
  shape.block = dim3(C::kThreads);
  shape.shared_bytes = C::kSharedBytes;
  shape.cluster_z = p.split_k;
  Launch(kernel, shape, stream, "convolution", p);
}

template <Format F>
void LaunchFormat(const ConvConfig& config, const ConvKernelArgs& p, cudaStream_t stream) {
  if (config.block_m == 128) return LaunchTile<F, 128, 128, 2, 4>(p, stream);
  switch (config.block_n) {
    case 16:
      return LaunchTile<F, 64, 16, 4, 1>(p, stream);
    case 32:
      return LaunchTile<F, 64, 32, 4, 1>(p, stream);
    default:
      // a stage of 32-bit values is short work: copies must be ahead by more of them
      if constexpr (F == Format::kFp32 || F == Format::kTf32) {
        constexpr int kFewBlocks = 256;
        const int tiles = (p.a.shape.Positions() + 63) / 64 * (p.padded_m / 64) * p.a.shape.phases;
        if (tiles * p.split_k <= kFewBlocks) {
          return LaunchTile<F, 64, 64, 2, 2, kDeepStages>(p, stream);
        }
      }
      return LaunchTile<F, 64, 64, 2, 2>(p, stream);
  }
}

}  // namespace

ConvConfig ChooseConvConfig(const ConvShape& s, const GpuTraits& gpu) {
  // A constant of the algorithm, not the GPU's multiprocessors: it sets the order of the sums, and
  // with it the bits, which all GPUs with clusters share.
  constexpr int kTargetBlocks = 128;
  ConvConfig c;
  const int positions = s.Positions();
  auto tiles = [&](int bm, int bn) {
    return (positions + bn - 1) / bn * (PaddedM(s.out_c) / bm) * s.phases;
  };
  if (s.out_c % 128 == 0 && tiles(128, 128) >= kTargetBlocks) return {128, 128, 1};
  c.block_n = positions <= 16 ? 16 : positions <= 32 ? 32 : 64;
  while (c.split_k < 8 && tiles(64, c.block_n) * c.split_k < kTargetBlocks &&
         s.K() / (c.split_k * 2) >= 128) {
    c.split_k *= 2;
  }
  c.split_k = std::min(c.split_k, gpu.ClusterBlocks());
  return c;
}

void LaunchMmaConv(Format format, const ConvArgs& args, cudaStream_t stream) {
  const ConvConfig config = ChooseConvConfig(args.shape, GpuTraits::Current());
  const ConvKernelArgs p = {args, KTiles(format, args.shape), PaddedM(args.shape.out_c),
                            config.split_k};
  switch (format) {
    case Format::kFp32:
      return LaunchFormat<Format::kFp32>(config, p, stream);
    case Format::kTf32:
      return LaunchFormat<Format::kTf32>(config, p, stream);
    case Format::kFp16:
      return LaunchFormat<Format::kFp16>(config, p, stream);
    case Format::kBf16:
      return LaunchFormat<Format::kBf16>(config, p, stream);
  }
}

}  // namespace mjp
