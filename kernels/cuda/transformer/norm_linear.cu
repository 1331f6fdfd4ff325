// y = act(norm(x + gate branch) W^T + b) of one sequence of at most 32 rows by 16 out channels, a
// block for each such tile. Weights come first (cp.async), before the kernel waits for its
// predecessor, whose time hides them. Then each of eight warps makes four rows of the layer's
// input: all loads of a row's values and of the sequence's terms are under way together, the rows'
// sums are trees over the warp side by side. The warps share out k, and their sums are added in the
// order of the warps. Every block of a sequence makes the same input: that costs less than another
// launch while there are few rows. Bytes from L2 for each block: in times 32 of weights, 192 of x
// and branch, 24 of terms.

#include <algorithm>

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/transformer/norm_linear.cuh"
#include "kernels/cuda/transformer/token_activation.cuh"
#include "kernels/cuda/transformer/token_norm_row.cuh"
#include "kernels/shared/host_device.h"

namespace mjp {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps, kRows = NormLinearArgs::kMostRows;
constexpr int kRowsEach = kRows / kWarps;  // of a warp
constexpr int kOut = 16;                   // channels of a block
constexpr int kFours = 4, kMostIn = kFours * kLaneFours;
constexpr int kSumPitch = kOut + 2;  // floats

// Bytes from one row of shared memory to the next: an odd number of 16.
MJP_HOST_DEVICE constexpr int Pitch(int elements) { return elements * 2 + 16; }

// Weights, and behind them the input, whose place the sums take.
constexpr size_t kSumBytes = sizeof(float) * kWarps * kRows * kSumPitch;
size_t SharedBytes(int in) {
  return static_cast<size_t>(kOut) * Pitch(in) +
         std::max(static_cast<size_t>(kRows) * Pitch(in), kSumBytes);
}

__device__ __forceinline__ void CopyWeights(const NormLinearArgs& a, uint32_t to) {
  const int vectors = a.in / 8, row = threadIdx.x / kOut, first = threadIdx.x % kOut;
  const auto* from = static_cast<const uint8_t*>(a.weight) +
                     static_cast<size_t>(blockIdx.x * kOut + row) * a.in * 2;
  for (int v = first; v < vectors; v += kOut)
    CopyAsync16(to + row * Pitch(a.in) + v * 16, from + v * 16, true);
  CommitCopies();
}

// Adds `x` over the warp, each of them.
__device__ __forceinline__ void WarpSums(float (&x)[kRowsEach]) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1)
#pragma unroll
    for (int j = 0; j < kRowsEach; ++j) x[j] += __shfl_xor_sync(0xffffffffu, x[j], mask);
}

// v = x + gate branch of this warp's rows; beyond the sequence zeros.
template <typename T>
__device__ __forceinline__ void LoadRows(const NormLinearArgs& a, float4 (&v)[kRowsEach][kFours]) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  const size_t row0 = static_cast<size_t>(blockIdx.y) * a.rows;
  Pack<T, 4> branch[kRowsEach][kFours] = {};
#pragma unroll
  for (int j = 0; j < kRowsEach; ++j) {
    const int row = warp + j * kWarps;
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const int column = i * kLaneFours + lane * kFour;
      const bool there = row < a.rows && column < a.in;
      const size_t at = (row0 + row) * a.in + column;
      v[j][i] = there ? Four(a.norm.x + at) : make_float4(0, 0, 0, 0);
      if (there && a.norm.branch != nullptr)
        branch[j][i] =
            *reinterpret_cast<const Pack<T, 4>*>(static_cast<const T*>(a.norm.branch) + at);
    }
  }
  if (a.norm.branch == nullptr) return;
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    const int column = i * kLaneFours + lane * kFour;
    if (column >= a.in) continue;
    const float4 gate = TermsAt(a.norm.terms, static_cast<int>(row0), a.norm.terms.gate + column);
#pragma unroll
    for (int j = 0; j < kRowsEach; ++j) {
      const float4 b = UnpackFour(branch[j][i]);
      float4& x = v[j][i];
      x.x = fmaf(gate.x, b.x, x.x), x.y = fmaf(gate.y, b.y, x.y);
      x.z = fmaf(gate.z, b.z, x.z), x.w = fmaf(gate.w, b.w, x.w);
    }
  }
}

// The mean of each of this warp's rows, and the reciprocal of its deviation.
__device__ __forceinline__ void RowMoments(const NormLinearArgs& a,
                                           const float4 (&v)[kRowsEach][kFours],
                                           float (&mean)[kRowsEach], float (&scale)[kRowsEach]) {
  const int lane = threadIdx.x & 31;
  const float width = static_cast<float>(a.in);
#pragma unroll
  for (int j = 0; j < kRowsEach; ++j) {
    mean[j] = 0;
#pragma unroll
    for (int i = 0; i < kFours; ++i) mean[j] += v[j][i].x + v[j][i].y + v[j][i].z + v[j][i].w;
  }
  WarpSums(mean);
#pragma unroll
  for (int j = 0; j < kRowsEach; ++j) {
    mean[j] /= width;
    scale[j] = 0;
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      if (i * kLaneFours + lane * kFour >= a.in) continue;
      const float x = v[j][i].x - mean[j], y = v[j][i].y - mean[j];
      const float z = v[j][i].z - mean[j], w = v[j][i].w - mean[j];
      scale[j] += x * x + y * y + z * z + w * w;
    }
  }
  WarpSums(scale);
#pragma unroll
  for (int j = 0; j < kRowsEach; ++j) scale[j] = 1.0f / sqrtf(scale[j] / width + a.norm.epsilon);
}

// The layer's input in shared memory; the first block of a sequence keeps its sum.
template <typename T>
__device__ __forceinline__ void NormRows(const NormLinearArgs& a, uint8_t* input) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  const int row0 = static_cast<int>(blockIdx.y) * a.rows;
  float4 v[kRowsEach][kFours];
  LoadRows<T>(a, v);
  if (a.norm.sum != nullptr && blockIdx.x == 0) {
#pragma unroll
    for (int j = 0; j < kRowsEach; ++j)
#pragma unroll
      for (int i = 0; i < kFours; ++i) {
        const int row = warp + j * kWarps, column = i * kLaneFours + lane * kFour;
        if (row < a.rows && column < a.in)
          *reinterpret_cast<float4*>(a.norm.sum + static_cast<size_t>(row0 + row) * a.in + column) =
              v[j][i];
      }
  }
  float mean[kRowsEach] = {}, scale[kRowsEach] = {1, 1, 1, 1};
  if (a.norm.normalize) RowMoments(a, v, mean, scale);
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    const int column = i * kLaneFours + lane * kFour;
    if (column >= a.in) continue;
    float4 factor = make_float4(1, 1, 1, 1), shift = make_float4(0, 0, 0, 0);
    if (a.norm.normalize) {
      factor = TermsAt(a.norm.terms, row0, a.norm.terms.scale + column);
      shift = TermsAt(a.norm.terms, row0, a.norm.terms.shift + column);
      factor.x += 1, factor.y += 1, factor.z += 1, factor.w += 1;
    }
#pragma unroll
    for (int j = 0; j < kRowsEach; ++j) {
      const int row = warp + j * kWarps;
      const float4& x = v[j][i];
      const float m = mean[j], s = scale[j];
      const float4 y = make_float4(
          fmaf((x.x - m) * s, factor.x, shift.x), fmaf((x.y - m) * s, factor.y, shift.y),
          fmaf((x.z - m) * s, factor.z, shift.z), fmaf((x.w - m) * s, factor.w, shift.w));
      *reinterpret_cast<Pack<T, 4>*>(input + row * Pitch(a.in) + column * sizeof(T)) =
          PackFour<T>(row < a.rows ? y : make_float4(0, 0, 0, 0));
    }
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
__device__ __forceinline__ void Finish(const NormLinearArgs& a, const float* sums) {
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
template <Format F>
__global__ void __launch_bounds__(kThreads) NormLinearKernel(const NormLinearArgs a) {
  using T = Storage<F>;
  extern __shared__ __align__(128) uint8_t shared[];
  uint8_t* const input = shared + kOut * Pitch(a.in);
  CopyWeights(a, SharedAddress(shared));
  ReleaseSuccessor();
  WaitForPredecessor();
  NormRows<T>(a, input);
  WaitCopies<0>();
  __syncthreads();
  float acc[2][2][4] = {};
  Multiply<F>(acc, SharedAddress(input), SharedAddress(shared), a.in);
  __syncthreads();  // the input is read, and sums take its place
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  float* sums = reinterpret_cast<float*>(input);
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

template <Format F>
void LaunchFormat(const NormLinearArgs& a, cudaStream_t stream) {
  const auto kernel = NormLinearKernel<F>;
  static const cudaError_t allowed = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(SharedBytes(kMostIn)));
  CheckCuda(allowed, "shared memory of a linear layer behind a norm");
  LaunchShape shape;
  shape.grid = dim3((a.out + kOut - 1) / kOut, a.sequences);
  shape.block = dim3(kThreads);
  shape.shared_bytes = SharedBytes(a.in);
  Launch(kernel, shape, stream, "norm and linear layer", a);
}

}  // namespace

bool NormLinearSupports(Format format, const NormLinearArgs& a) {
  return FormatBytes(format) == 2 && a.rows <= kRows && a.in % kLaneFours == 0 && a.in <= kMostIn;
}

void LaunchNormLinear(Format format, const NormLinearArgs& args, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(args, stream);
  LaunchFormat<Format::kBf16>(args, stream);
}

}  // namespace mjp
