// y = act(x W^T + b) of one sequence of at most 32 rows by 16 out channels, a block for each such
// tile. Weights come first (cp.async), before the kernel waits for its predecessor, whose time
// hides them. Then the block makes all of the layer's input by itself in shared memory, 32 rows of
// all `in`: copied, or normalised by a warp for each row, or as the attention of a head for each
// warp. Eight warps share out k and add their sums in the order of the warps. Every block of a
// sequence does the same before the product: that costs less than another launch while there are
// few rows. Bytes from L2 for each block: 64 in of weights and rows, or 192 in for the attention.

#include <algorithm>

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/transformer/short_attention.cuh"
#include "kernels/cuda/transformer/short_linear.cuh"
#include "kernels/cuda/transformer/token_activation.cuh"
#include "kernels/cuda/transformer/token_norm_row.cuh"
#include "kernels/shared/host_device.h"

namespace mjp {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps, kRows = ShortLinearArgs::kMostRows;
constexpr int kOut = 16;             // channels of a block
constexpr int kMostNormFours = 4;    // of a row's norm: 512 wide
constexpr int kSumPitch = kOut + 2;  // floats

// Bytes from one row of shared memory to the next: an odd number of 16.
MJP_HOST_DEVICE constexpr int Pitch(int elements) { return elements * 2 + 16; }

struct ShortSmem {
  size_t weights, input, attention, bytes;
};
// Where things stand; sums take the input's place.
MJP_HOST_DEVICE inline ShortSmem Layout(const ShortLinearArgs& a) {
  ShortSmem s;
  s.weights = 0;
  s.input = s.weights + static_cast<size_t>(kOut) * Pitch(a.in);
  const size_t input = static_cast<size_t>(kRows) * Pitch(a.in);
  const size_t sums = sizeof(float) * kWarps * kRows * kSumPitch;
  s.attention = s.input + (input > sums ? input : sums);
  s.bytes = s.attention +
            (a.kind == ShortInput::kAttention ? static_cast<size_t>(kRows) * Pitch(3 * a.in) : 0);
  return s;
}

// Copies `rows` rows of `elements` 16-bit values, `pitch` of them apart; zeros below them.
__device__ __forceinline__ void CopyRows(const void* from, int rows, int all_rows, int elements,
                                         size_t pitch, uint32_t to) {
  const int vectors = elements / 8;
  for (int i = threadIdx.x; i < all_rows * vectors; i += kThreads) {
    const int row = i / vectors, vector = i - row * vectors;
    const bool there = row < rows;
    const auto* at = static_cast<const uint8_t*>(from) + (there ? row * pitch * 2 : 0);
    CopyAsync16(to + row * Pitch(elements) + vector * 16, at + vector * 16, there);
  }
}

template <typename T>
__device__ __forceinline__ void NormRows(const ShortLinearArgs& a, uint8_t* input) {
  for (int row = threadIdx.x / 32; row < kRows; row += kWarps) {
    T* to = reinterpret_cast<T*>(input + row * Pitch(a.in));
    if (row >= a.rows) {
      for (int c = 4 * (threadIdx.x & 31); c < a.in; c += kLaneFours)
        *reinterpret_cast<Pack<T, 4>*>(to + c) = {};
      continue;
    }
    NormRow<T, kMostNormFours>(a.norm, blockIdx.y * a.rows + row, blockIdx.x == 0,
                               [&](int column, const float4& y) {
                                 *reinterpret_cast<Pack<T, 4>*>(to + column) = PackFour<T>(y);
                               });
  }
}

// This warp's share of k: the sums of 32 x 16.
template <Format F>
__device__ __forceinline__ void Multiply(float (&acc)[2][2][4], uint32_t input, uint32_t weights,
                                         int in) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, pitch = Pitch(in);
  const uint32_t a_row = input + (lane & 15) * pitch + (lane >> 4) * 16;
  const uint32_t b_row =
      weights + ((lane & 7) + ((lane >> 4) << 3)) * pitch + ((lane >> 3) & 1) * 16;
#pragma unroll 4
  for (int step = warp; step < in / 16; step += kWarps) {
    uint32_t a[4], b[4];
    LoadMatrix4(b, b_row + step * 32);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      LoadMatrix4(a, a_row + i * 16 * pitch + step * 32);
      MultiplyAccumulate<F>(acc[i][0], a, b[0], b[1]);
      MultiplyAccumulate<F>(acc[i][1], a, b[2], b[3]);
    }
  }
}

// Adds the warps' sums, and stores two neighbours of a row.
template <typename T>
__device__ __forceinline__ void Finish(const ShortLinearArgs& a, const float* sums) {
  const int row = threadIdx.x / (kOut / 2), column = threadIdx.x % (kOut / 2) * 2;
  const int out = blockIdx.x * kOut + column;
  if (row >= a.rows || out >= a.out) return;
  float y[2] = {};
  for (int warp = 0; warp < kWarps; ++warp) {
    const float* sum = sums + (warp * kRows + row) * kSumPitch + column;
    y[0] += sum[0], y[1] += sum[1];
  }
  const bool two = out + 1 < a.out;
  if (a.bias != nullptr) y[0] += a.bias[out], y[1] += two ? a.bias[out + 1] : 0.0f;
  y[0] = ActivateToken(a.activation, y[0]), y[1] = ActivateToken(a.activation, y[1]);
  if (a.cosines != nullptr && out < a.rotary_columns) {
    const int at = row * (a.rotary_head / 2) + out % a.rotary_head / 2;
    const float cosine = a.cosines[at], sine = a.sines[at], x = y[0];
    y[0] = x * cosine - y[1] * sine;
    y[1] = y[1] * cosine + x * sine;
  }
  const size_t index = (static_cast<size_t>(blockIdx.y) * a.rows + row) * a.out + out;
  for (int e = 0; e < (two ? 2 : 1); ++e) {
    if (a.y_fp32) {
      static_cast<float*>(a.y)[index + e] = y[e];
    } else {
      static_cast<T*>(a.y)[index + e] = FromFloat<T>(y[e]);
    }
  }
}

// grid: (out / 16, sequences)
template <Format F, ShortInput kKind, int kHead>
__global__ void __launch_bounds__(kThreads) ShortLinearKernel(const ShortLinearArgs a) {
  using T = Storage<F>;
  extern __shared__ __align__(128) uint8_t shared[];
  const ShortSmem at = Layout(a);
  const uint32_t base = SharedAddress(shared);
  const auto* weight = static_cast<const uint8_t*>(a.weight) +
                       static_cast<size_t>(blockIdx.x) * kOut * a.in * sizeof(T);
  CopyRows(weight, kOut, kOut, a.in, a.in, base + at.weights);
  ReleaseSuccessor();
  WaitForPredecessor();
  const int columns = kKind == ShortInput::kAttention ? 3 * a.in : a.in;
  if constexpr (kKind == ShortInput::kNorm) {
    CommitCopies();
    NormRows<T>(a, shared + at.input);
  } else {
    const auto* x = static_cast<const T*>(a.x) + static_cast<size_t>(blockIdx.y) * a.rows * columns;
    CopyRows(x, a.rows, kRows, columns, columns,
             base + (kKind == ShortInput::kAttention ? at.attention : at.input));
    CommitCopies();
  }
  WaitCopies<0>();
  __syncthreads();
  if constexpr (kKind == ShortInput::kAttention) {
    for (int head = threadIdx.x / 32; head < a.heads; head += kWarps)
      ShortAttention<F, kHead>(base + at.attention, Pitch(3 * a.in), a.in, head, a.rows,
                               shared + at.input, Pitch(a.in));
    __syncthreads();
  }
  float acc[2][2][4] = {};
  Multiply<F>(acc, base + at.input, base + at.weights, a.in);
  __syncthreads();  // the input is read, and sums take its place
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  float* sums = reinterpret_cast<float*>(shared + at.input);
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        sums[(warp * kRows + i * 16 + (lane >> 2) + (q >> 1) * 8) * kSumPitch + j * 8 +
             2 * (lane & 3) + (q & 1)] = acc[i][j][q];
  __syncthreads();
  Finish<T>(a, sums);
}

template <Format F, ShortInput kKind, int kHead = 64>
void LaunchKind(const ShortLinearArgs& a, cudaStream_t stream) {
  const auto kernel = ShortLinearKernel<F, kKind, kHead>;
  static const cudaError_t allowed = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, GpuTraits::Current().shared_bytes);
  CheckCuda(allowed, "shared memory of a short linear layer");
  LaunchShape shape;
  shape.grid = dim3((a.out + kOut - 1) / kOut, a.sequences);
  shape.block = dim3(kThreads);
  shape.shared_bytes = Layout(a).bytes;
  Launch(kernel, shape, stream, "short linear layer", a);
}

template <Format F>
void LaunchFormat(const ShortLinearArgs& a, cudaStream_t stream) {
  switch (a.kind) {
    case ShortInput::kRows:
      return LaunchKind<F, ShortInput::kRows>(a, stream);
    case ShortInput::kNorm:
      return LaunchKind<F, ShortInput::kNorm>(a, stream);
    case ShortInput::kAttention:
      break;
  }
  if (a.in / a.heads == 32) return LaunchKind<F, ShortInput::kAttention, 32>(a, stream);
  LaunchKind<F, ShortInput::kAttention, 64>(a, stream);
}

}  // namespace

bool ShortLinearSupports(Format format, const ShortLinearArgs& a, const GpuTraits& gpu) {
  const bool heads = a.kind != ShortInput::kAttention ||
                     (a.in % a.heads == 0 && (a.in / a.heads == 32 || a.in / a.heads == 64));
  const bool norm = a.kind != ShortInput::kNorm || a.in <= kMostNormFours * kLaneFours;
  return FormatBytes(format) == 2 && a.rows <= kRows && a.in % 128 == 0 && heads && norm &&
         Layout(a).bytes <= static_cast<size_t>(gpu.shared_bytes);
}

void LaunchShortLinear(Format format, const ShortLinearArgs& args, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(args, stream);
  LaunchFormat<Format::kBf16>(args, stream);
}

}  // namespace mjp
