// Which kernel runs an attention; the one of 32-bit formats.
//
// There a warp makes one row: its lanes share out the keys for the scores, which stand in shared
// memory, and the columns for the weighted sum. Every product and sum is float32 on the ordinary
// cores. It is for checks: bound by the loads of keys and values from L2.

#include <string>

#include "base/error.h"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/transformer/attention.cuh"
#include "kernels/cuda/transformer/attention_mma.cuh"

namespace mjp {
namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kMostHeadSize = 128;
constexpr size_t kSharedBytes = 48 * 1024;  // that a block has without asking

// Element `c` of a head's row that stands at `position` of its sequence.
__device__ __forceinline__ float Rotated(const TokenAttentionArgs& a, const float* row,
                                         int position, int c) {
  if (a.cosines == nullptr) return row[c];
  const int half = a.head_size / 2, i = c < half ? c : c - half;
  const float cosine = a.cosines[position * half + i], sine = a.sines[position * half + i];
  return c < half ? row[c] * cosine - row[c + half] * sine : row[c] * cosine + row[c - half] * sine;
}

__device__ __forceinline__ const float* HeadRow(const DeviceRows& rows, int sequence, int row,
                                                int first) {
  return static_cast<const float*>(rows.data) + sequence * rows.batch + row * rows.pitch + first;
}

// grid: (queries / kWarps, heads, sequences)
__global__ void __launch_bounds__(kThreads) Attention32Kernel(const TokenAttentionArgs a) {
  extern __shared__ float shared[];
  ReleaseSuccessor();
  WaitForPredecessor();
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  const int query = blockIdx.x * kWarps + warp, first = blockIdx.y * a.head_size;
  const int sequence = blockIdx.z;
  if (query >= a.queries) return;
  float* scores = shared + warp * (a.keys + kMostHeadSize);
  float* q = scores + a.keys;
  const float* row = HeadRow(a.q, sequence, query, first);
  for (int c = lane; c < a.head_size; c += 32) q[c] = Rotated(a, row, query, c);
  __syncwarp();
  const float scale = 1.0f / sqrtf(static_cast<float>(a.head_size));
  float largest = -INFINITY;
  for (int key = lane; key < a.keys; key += 32) {
    const float* k = HeadRow(a.k, sequence, key, first);
    float score = 0;
    for (int c = 0; c < a.head_size; ++c) score = fmaf(q[c], Rotated(a, k, key, c), score);
    scores[key] = score * scale;
    largest = fmaxf(largest, scores[key]);
  }
  largest = WarpMax(largest);
  float total = 0;
  for (int key = lane; key < a.keys; key += 32) {
    scores[key] = expf(scores[key] - largest);
    total += scores[key];
  }
  total = WarpSum(total);
  __syncwarp();
  float* out = static_cast<float*>(a.out) +
               (static_cast<size_t>(sequence) * a.queries + query) * a.heads * a.head_size + first;
  for (int c = lane; c < a.head_size; c += 32) {
    float sum = 0;
    for (int key = 0; key < a.keys; ++key)
      sum = fmaf(scores[key], HeadRow(a.v, sequence, key, first)[c], sum);
    out[c] = sum / total;
  }
}

void LaunchAttention32(const TokenAttentionArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.queries + kWarps - 1) / kWarps, a.heads, a.sequences);
  shape.block = dim3(kThreads);
  shape.shared_bytes = sizeof(float) * kWarps * (a.keys + kMostHeadSize);
  if (shape.shared_bytes > kSharedBytes)
    throw Unsupported("attention over " + std::to_string(a.keys) +
                      " tokens in a 32-bit format: the GPU takes up to " +
                      std::to_string(kSharedBytes / sizeof(float) / kWarps - kMostHeadSize) +
                      "; use fp16, bf16 or the CPU backend");
  Launch(Attention32Kernel, shape, stream, "attention", a);
}

}  // namespace

void LaunchTokenAttention(Format format, const TokenAttentionArgs& args, cudaStream_t stream) {
  if (args.head_size % 8 != 0 || args.head_size > kMostHeadSize)
    throw Unsupported("attention with heads of " + std::to_string(args.head_size) +
                      ": the GPU kernels take multiples of 8 up to 128; use the CPU backend");
  if (FormatBytes(format) == 4) return LaunchAttention32(args, stream);
  LaunchAttentionMma(format, args, stream);
}

}  // namespace mjp
