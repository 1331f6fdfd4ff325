#ifndef KERNELS_CUDA_TRANSFORMER_TOKEN_NORM_ROW_CUH_
#define KERNELS_CUDA_TRANSFORMER_TOKEN_NORM_ROW_CUH_

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/transformer/token_norm.cuh"

// One row of a residual sum and its norm, by a warp that holds it in registers: a lane has kFours
// times four neighbours, kLaneFours apart.

namespace mjp {

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
__device__ __forceinline__ float4 TokenSum(const TokenNormArgs& a, int row, int column) {
  const int x_row = a.x_rows > 0 ? row % a.x_rows : row;
  float4 v = Four(a.x + x_row * (a.x_pitch > 0 ? a.x_pitch : a.width) + column);
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

// A norm's own weights, in a lane's columns. No launch writes them: a kernel loads them while it
// waits for the one before.
template <int kFours>
struct NormWeights {
  float4 weight[kFours], bias[kFours];

  __device__ __forceinline__ explicit NormWeights(const TokenNormArgs& a) {
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const int column = i * kLaneFours + (threadIdx.x & 31) * kFour;
      if (a.weight == nullptr || column >= a.width) continue;
      weight[i] = Four(a.weight + column), bias[i] = Four(a.bias + column);
    }
  }
};

// The norm of v, which has `mean` and the reciprocal of the deviation `scale`, with its own weights
// or those of its terms.
__device__ __forceinline__ float4 NormOfFour(const TokenNormArgs& a, float4 v, float mean,
                                             float scale, int row, int column, float4 w, float4 b) {
  v.x = (v.x - mean) * scale, v.y = (v.y - mean) * scale;
  v.z = (v.z - mean) * scale, v.w = (v.w - mean) * scale;
  if (a.terms.of_condition != nullptr) {
    w = TermsAt(a.terms, row, a.terms.scale + column);
    w.x += 1.0f, w.y += 1.0f, w.z += 1.0f, w.w += 1.0f;
    b = TermsAt(a.terms, row, a.terms.shift + column);
  }
  return make_float4(fmaf(v.x, w.x, b.x), fmaf(v.y, w.y, b.y), fmaf(v.z, w.z, b.z),
                     fmaf(v.w, w.w, b.w));
}

// Calls store(column, y) with four neighbours of the row's norm at a time, and keeps the sum where
// args.sum says so.
template <typename T, int kFours, typename Store>
__device__ __forceinline__ void NormRow(const TokenNormArgs& a, const NormWeights<kFours>& weights,
                                        int row, const Store& store) {
  const int lane = threadIdx.x & 31;
  float4 v[kFours];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    const int column = i * kLaneFours + lane * kFour;
    if (column >= a.width) continue;
    v[i] = TokenSum<T>(a, row, column);
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
    if (a.sum != nullptr)
      *reinterpret_cast<float4*>(a.sum + static_cast<size_t>(row) * a.width + column) = v[i];
    store(column, a.normalize ? NormOfFour(a, v[i], mean, scale, row, column, weights.weight[i],
                                           weights.bias[i])
                              : v[i]);
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_TOKEN_NORM_ROW_CUH_
