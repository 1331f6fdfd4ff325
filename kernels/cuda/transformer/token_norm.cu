// Residual sum and LayerNorm, a warp for each row: the row stays in registers, four neighbours of a
// lane in one access, and both sums of the norm are trees over the warp. Two passes over the
// registers (mean, then squares of the differences), as the definition has it. Bound by launch for
// few rows; by memory for many: 14 bytes of an element in 16-bit formats.

#include <string>

#include "base/error.h"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/transformer/token_norm.cuh"

namespace mjp {
namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kFour = 4, kLaneFours = 32 * kFour;  // elements of a warp's access

__device__ __forceinline__ float4 Four(const float* at) {
  return *reinterpret_cast<const float4*>(at);
}

// The sum of both tables' terms at `column`.
__device__ __forceinline__ float4 TermsAt(const TokenTerms& t, int row, int column) {
  const int sequence = row / t.rows_per_sequence;
  const float4 c = Four(t.of_condition + sequence / t.sequences_per_condition * t.pitch + column);
  const float4 s = Four(t.of_time + t.time[sequence] * t.pitch + column);
  return make_float4(c.x + s.x, c.y + s.y, c.z + s.z, c.w + s.w);
}

// v = x + gate branch, four neighbours of a row.
template <typename T>
__device__ __forceinline__ float4 Sum(const TokenNormArgs& a, int row, int column) {
  const int x_row = a.x_rows > 0 ? row % a.x_rows : row;
  float4 v = Four(a.x + static_cast<size_t>(x_row) * a.width + column);
  if (a.branch == nullptr) return v;
  const size_t at = static_cast<size_t>(row) * a.width + column;
  const float4 b =
      UnpackFour(*reinterpret_cast<const Pack<T, 4>*>(static_cast<const T*>(a.branch) + at));
  float4 gate = make_float4(1, 1, 1, 1);
  if (a.terms.of_condition != nullptr) gate = TermsAt(a.terms, row, a.terms.gate + column);
  v.x = fmaf(gate.x, b.x, v.x), v.y = fmaf(gate.y, b.y, v.y);
  v.z = fmaf(gate.z, b.z, v.z), v.w = fmaf(gate.w, b.w, v.w);
  return v;
}

// The norm of v, which has `mean` and the reciprocal of the deviation `scale`.
__device__ __forceinline__ float4 Norm(const TokenNormArgs& a, float4 v, float mean, float scale,
                                       int row, int column) {
  v.x = (v.x - mean) * scale, v.y = (v.y - mean) * scale;
  v.z = (v.z - mean) * scale, v.w = (v.w - mean) * scale;
  float4 w, b;
  if (a.terms.of_condition != nullptr) {
    w = TermsAt(a.terms, row, a.terms.scale + column);
    w.x += 1.0f, w.y += 1.0f, w.z += 1.0f, w.w += 1.0f;
    b = TermsAt(a.terms, row, a.terms.shift + column);
  } else {
    w = Four(a.weight + column), b = Four(a.bias + column);
  }
  return make_float4(fmaf(v.x, w.x, b.x), fmaf(v.y, w.y, b.y), fmaf(v.z, w.z, b.z),
                     fmaf(v.w, w.w, b.w));
}

// grid: rows / kWarps. A lane holds kFours times four neighbours, kLaneFours apart.
template <typename T, int kFours>
__global__ void __launch_bounds__(kThreads) TokenNormKernel(const TokenNormArgs a) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int row = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x & 31;
  if (row >= a.rows) return;
  float4 v[kFours];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    const int column = i * kLaneFours + lane * kFour;
    if (column >= a.width) continue;
    v[i] = Sum<T>(a, row, column);
    sum += v[i].x + v[i].y + v[i].z + v[i].w;
  }
  float mean = 0, scale = 1;
  if (a.normalize) {
    mean = WarpSum(sum) / static_cast<float>(a.width);
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      if (i * kLaneFours + lane * kFour >= a.width) continue;
      const float x = v[i].x - mean, y = v[i].y - mean, z = v[i].z - mean, w = v[i].w - mean;
      squares += x * x + y * y + z * z + w * w;
    }
    const float variance = WarpSum(squares) / static_cast<float>(a.width);
    scale = 1.0f / sqrtf(variance + a.epsilon);
  }
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    const int column = i * kLaneFours + lane * kFour;
    if (column >= a.width) continue;
    const size_t at = static_cast<size_t>(row) * a.width + column;
    if (a.sum != nullptr) *reinterpret_cast<float4*>(a.sum + at) = v[i];
    const float4 y = a.normalize ? Norm(a, v[i], mean, scale, row, column) : v[i];
    if (a.normed != nullptr) *reinterpret_cast<float4*>(a.normed + at) = y;
    if (a.y != nullptr) *reinterpret_cast<Pack<T, 4>*>(static_cast<T*>(a.y) + at) = PackFour<T>(y);
  }
}

template <typename T>
void LaunchTyped(const TokenNormArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.rows + kWarps - 1) / kWarps);
  shape.block = dim3(kThreads);
  const auto launch = [&](auto kernel) { Launch(kernel, shape, stream, "norm of tokens", a); };
  if (a.width <= kLaneFours) return launch(TokenNormKernel<T, 1>);
  if (a.width <= 4 * kLaneFours) return launch(TokenNormKernel<T, 4>);
  if (a.width <= 8 * kLaneFours) return launch(TokenNormKernel<T, 8>);
  launch(TokenNormKernel<T, 16>);
}

}  // namespace

void LaunchTokenNorm(Format format, const TokenNormArgs& args, cudaStream_t stream) {
  if (args.width % 8 != 0 || args.width > 16 * kLaneFours)
    throw Unsupported("transformer of width " + std::to_string(args.width) +
                      ": the GPU kernels take multiples of 8 up to 2048; use the CPU backend");
  if (format == Format::kFp16) return LaunchTyped<__half>(args, stream);
  if (format == Format::kBf16) return LaunchTyped<__nv_bfloat16>(args, stream);
  LaunchTyped<float>(args, stream);
}

}  // namespace mjp
