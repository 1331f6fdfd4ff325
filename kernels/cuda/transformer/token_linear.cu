// y[n][m] = activation(bias[m] + row_bias[n][m] + sum_k x[n][k] w[m][k]) of some hundreds of
// tokens: bound by latency, and by bytes from L2.
//
// A warpgroup makes 64 tokens x 64 out channels: small tiles, so that a layer of 300 tokens has
// enough of them. Stages of 64 k go through a ring of shared memory (cp.async) that holds most of
// k, so that the latency of L2 is paid once; two blocks fit a multiprocessor, and so the next
// launch's weights and biases arrive while this one ends. Few tiles: the blocks of a cluster split
// k, and each sums some rows over the others' shared memory in the order of the ranks. Bytes from
// L2: x once for each 64 out channels, weights once for each 64 tokens.

#include "kernels/cuda/conv/epilogue.cuh"
#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"
#include "kernels/cuda/transformer/mma_attention_parts.cuh"
#include "kernels/cuda/transformer/token_linear.cuh"

namespace mjp {
namespace {

constexpr int kTile = 64;  // tokens, out channels, and k of a stage
constexpr int kThreads = 128, kRowsPerPass = kThreads / kStageVectors;
constexpr int kStages = 6, kAhead = kStages - 2;
constexpr int kOperandBytes = kTile * kRowBytes, kStageBytes = 2 * kOperandBytes;
constexpr int kAlignment = 1024;      // of the swizzle
constexpr int kSumPitch = kTile + 8;  // floats
constexpr size_t kSharedBytes = kAlignment + size_t{kStages} * kStageBytes;
static_assert(kTile * kSumPitch * sizeof(float) <= kSharedBytes - kAlignment);
constexpr int kMostRows = 1024, kLeastRows = 33, kMostSplit = 4;

struct TokenLinearKernelArgs {
  ConvArgs a;
  int rows, in, out, split;
};

// Biases of a thread's sums, and of both its rows.
struct TileBias {
  float2 value[2][kTile / 8];

  __device__ __forceinline__ TileBias(const TokenLinearKernelArgs& p, int row, int column) {
#pragma unroll
    for (int j = 0; j < kTile / 8; ++j) {
      float2 b = make_float2(0, 0);
      if (p.a.bias != nullptr) b = *reinterpret_cast<const float2*>(p.a.bias + column + j * 8);
      value[0][j] = value[1][j] = b;
    }
    if (p.a.row_bias == nullptr) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float* of_row = RowBias(p.a, row + r * 8);
#pragma unroll
      for (int j = 0; j < kTile / 8; ++j) {
        const float2 b = *reinterpret_cast<const float2*>(of_row + column + j * 8);
        value[r][j].x += b.x, value[r][j].y += b.y;
      }
    }
  }
};

// This block's sums to the cluster, and the layer's output of its slice of the tile's rows.
template <typename T>
__device__ __forceinline__ void AddSplitSums(const TokenLinearKernelArgs& p, uint32_t sums, int n0,
                                             int m0) {
  constexpr int kVector = 8, kVectors = kTile / kVector;
  const int slice = kTile / p.split, first = static_cast<int>(blockIdx.z) * slice;
  for (int i = threadIdx.x; i < slice * kVectors; i += kThreads) {
    const int row = first + i / kVectors, m = i % kVectors * kVector, n = n0 + row;
    if (n >= p.rows) break;
    float sum[kVector] = {};
#pragma unroll
    for (int rank = 0; rank < kMostSplit; ++rank) {
      if (rank >= p.split) break;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 v = LoadFromBlock(sums + (row * kSumPitch + m + half * 4) * 4, rank);
        sum[half * 4] += v.x, sum[half * 4 + 1] += v.y;
        sum[half * 4 + 2] += v.z, sum[half * 4 + 3] += v.w;
      }
    }
    const float* row_bias = RowBias(p.a, n);
    Pack<T, kVector> y;
#pragma unroll
    for (int e = 0; e < kVector; ++e) {
      const float biased = sum[e] + (p.a.bias != nullptr ? p.a.bias[m0 + m + e] : 0.0f);
      y.v[e] = FromFloat<T>(AddBiasAndActivate(p.a, biased, row_bias, m0 + m + e));
    }
    *reinterpret_cast<Pack<T, kVector>*>(static_cast<T*>(p.a.y) + static_cast<size_t>(n) * p.out +
                                         m0 + m) = y;
  }
}

// grid: (tiles of tokens, tiles of out channels, split)
template <Format F>
__global__ void __launch_bounds__(kThreads, 2) TokenLinearKernel(const TokenLinearKernelArgs p) {
  if constexpr (!kHaveWgmma) return Trap();
  using T = Storage<F>;
  extern __shared__ uint8_t shared[];
  const uint32_t skip = (kAlignment - SharedAddress(shared) % kAlignment) % kAlignment;
  const uint32_t ring = SharedAddress(shared) + skip;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int n0 = blockIdx.x * kTile, m0 = blockIdx.y * kTile;
  const int stages = p.in / kTile, first = stages * blockIdx.z / p.split;
  const int count = stages * (blockIdx.z + 1) / p.split - first;
  const int vector = tid % kStageVectors, row0 = tid / kStageVectors;
  const size_t pitch = static_cast<size_t>(p.in) * sizeof(T);
  const auto* weight = static_cast<const uint8_t*>(p.a.weight) + (m0 + row0) * pitch +
                       first * kRowBytes + vector * 16;
  const auto* x = static_cast<const uint8_t*>(p.a.x) + first * kRowBytes + vector * 16;

  const auto load_weights = [&](int slot, int stage) {
    const uint32_t to = ring + slot * kStageBytes + kOperandBytes;
#pragma unroll
    for (int i = 0; i < kTile / kRowsPerPass; ++i)
      CopyAsync16(Swizzled(to, row0 + i * kRowsPerPass, vector),
                  weight + i * kRowsPerPass * pitch + stage * kRowBytes, true);
  };
  const auto load_tokens = [&](int slot, int stage) {
    const uint32_t to = ring + slot * kStageBytes;
#pragma unroll
    for (int i = 0; i < kTile / kRowsPerPass; ++i) {
      const int n = n0 + row0 + i * kRowsPerPass;
      const bool there = n < p.rows;
      CopyAsync16(Swizzled(to, row0 + i * kRowsPerPass, vector),
                  x + (there ? n : 0) * pitch + stage * kRowBytes, there);
    }
  };

  for (int i = 0; i < kAhead && i < count; ++i) load_weights(i, i);
  const int row = n0 + warp * 16 + (lane >> 2), column = m0 + 2 * (lane & 3);
  const TileBias bias(p, row, column);
  ReleaseSuccessor();
  WaitForPredecessor();
  for (int i = 0; i < kAhead; ++i) {
    if (i < count) load_tokens(i, i);
    CommitCopies();
  }
  float acc[kTile / 2] = {};
  for (int stage = 0, slot = 0; stage < count; ++stage) {
    WaitCopies<kAhead - 1>();
    FenceAsyncProxy();
    __syncthreads();
    const uint32_t tokens = ring + slot * kStageBytes, weights = tokens + kOperandBytes;
    BeginWgmma();
#pragma unroll
    for (int step = 0; step < kStageVectors / 2; ++step)
      Wgmma<F>(acc, WgmmaTile(tokens + step * 32), WgmmaTile(weights + step * 32));
    CommitWgmma();
    // the slot of two stages ago: its products have been waited for
    const int next = slot >= 2 ? slot - 2 : slot + kStages - 2;
    if (stage + kAhead < count) {
      load_weights(next, stage + kAhead);
      load_tokens(next, stage + kAhead);
    }
    CommitCopies();
    WaitWgmma<1>();
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }
  WaitWgmma<0>();
  if (p.split == 1) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (row + r * 8 >= p.rows) break;
      T* y = static_cast<T*>(p.a.y) + static_cast<size_t>(row + r * 8) * p.out + column;
#pragma unroll
      for (int j = 0; j < kTile / 8; ++j) {
        const float2 b = bias.value[r][j];
        *reinterpret_cast<uint32_t*>(y + j * 8) =
            PackTwo(T{}, ActivateToken(p.a.activation, acc[4 * j + 2 * r] + b.x),
                    ActivateToken(p.a.activation, acc[4 * j + 2 * r + 1] + b.y));
      }
    }
    return;
  }
  WaitCopies<0>();
  __syncthreads();
  float* sums = reinterpret_cast<float*>(shared + skip);
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j)
#pragma unroll
    for (int r = 0; r < 2; ++r)
      *reinterpret_cast<float2*>(sums + (row - n0 + r * 8) * kSumPitch + column - m0 + j * 8) =
          make_float2(acc[4 * j + 2 * r], acc[4 * j + 2 * r + 1]);
  ClusterBarrier();
  AddSplitSums<T>(p, ring, n0, m0);
  ClusterBarrier();  // the others may still read this block's sums
}

// A constant of the algorithm, not the GPU's multiprocessors: it sets the order of the sums.
int ChooseSplit(int tiles, int stages) {
  constexpr int kMostBlocks = 264, kLeastStages = 4;
  int split = 1;
  while (split < kMostSplit && tiles * split * 2 <= kMostBlocks &&
         stages / (split * 2) >= kLeastStages)
    split *= 2;
  return split;
}

template <Format F>
void LaunchFormat(const TokenLinearKernelArgs& p, cudaStream_t stream) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      TokenLinearKernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  CheckCuda(allowed, "shared memory of a linear layer of tokens");
  LaunchShape shape;
  shape.grid = dim3((p.rows + kTile - 1) / kTile, p.out / kTile, p.split);
  shape.block = dim3(kThreads);
  shape.shared_bytes = kSharedBytes;
  shape.cluster_z = p.split;
  Launch(TokenLinearKernel<F>, shape, stream, "linear layer of tokens", p);
}

}  // namespace

bool TokenLinearSupports(Format format, const ConvArgs& a) {
  const ConvShape& s = a.shape;
  const bool linear = s.kernel_h * s.kernel_w * s.in_h * s.in_w * s.out_h * s.out_w == 1 &&
                      s.phases == 1 && s.first_c == 0 && a.residual == nullptr && !a.relu;
  return FormatBytes(format) == 2 && linear && !a.y_fp32 && s.batch >= kLeastRows &&
         s.batch <= kMostRows && s.in_c % kTile == 0 && s.out_c % kTile == 0 &&
         GpuTraits::Current().Wgmma();
}

void LaunchTokenLinear(Format format, const ConvArgs& args, cudaStream_t stream) {
  const ConvShape& s = args.shape;
  const int tiles = (s.batch + kTile - 1) / kTile * (s.out_c / kTile);
  const TokenLinearKernelArgs p = {args, s.batch, s.in_c, s.out_c,
                                   ChooseSplit(tiles, s.in_c / kTile)};
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(p, stream);
  LaunchFormat<Format::kBf16>(p, stream);
}

void LaunchLinear(Format format, const ConvArgs& args, cudaStream_t stream) {
  TokenLinearSupports(format, args) ? LaunchTokenLinear(format, args, stream)
                                    : LaunchConv(format, args, stream);
}

}  // namespace mjp
