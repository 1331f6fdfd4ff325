// Group normalisation with its activation, FiLM and residual, channel-last.
//
// One block for each (row, group); a thread keeps its share of the group in registers, as packs of
// V consecutive channels, so x is read once and y written once. Mean, then the sum of squared
// differences from it, each by a fixed tree over the block: two-pass, no cancellation, no atomics.

#include <numeric>
#include <string>

#include "kernels/device_math.cuh"
#include "kernels/group_norm.cuh"
#include "kernels/launch.cuh"

namespace dp {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr int kMaxThreads = 1024;

// Sum over the block, the same bits in every thread. `partial` holds 32 floats.
__device__ __forceinline__ float BlockSum(float x, float* partial) {
  x = WarpSum(x);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  if (warps == 1) return x;
  __syncthreads();
  if (lane == 0) partial[warp] = x;
  __syncthreads();
  return WarpSum(lane < warps ? partial[lane] : 0.0f);
}

// grid: (groups, rows). R packs of V channels per thread.
template <typename T, int V, int R>
__global__ void __launch_bounds__(kMaxThreads) GroupNormKernel(const GroupNormArgs a) {
  __shared__ float partial[32];
  WaitForPredecessor();
  ReleaseSuccessor();
  const int group = blockIdx.x, row = blockIdx.y;
  const int group_channels = a.channels / a.groups, packs_wide = group_channels / V;
  const int packs = packs_wide * a.positions;
  const size_t base = static_cast<size_t>(row) * a.positions * a.channels + group * group_channels;
  auto offset = [&](int p) {
    return base + static_cast<size_t>(p / packs_wide) * a.channels + (p % packs_wide) * V;
  };
  float x[R][V];
  float sum = 0.0f;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int p = threadIdx.x + r * blockDim.x;
    if (p >= packs) break;
    const auto pack = *reinterpret_cast<const Pack<T, V>*>(static_cast<const T*>(a.x) + offset(p));
#pragma unroll
    for (int v = 0; v < V; ++v) sum += x[r][v] = ToFloat(pack.v[v]);
  }
  const float count = static_cast<float>(packs * V);
  const float mean = BlockSum(sum, partial) / count;
  float squares = 0.0f;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (threadIdx.x + r * blockDim.x >= packs) break;
#pragma unroll
    for (int v = 0; v < V; ++v) squares += (x[r][v] - mean) * (x[r][v] - mean);
  }
  const float inverse = 1.0f / sqrtf(BlockSum(squares, partial) / count + kEpsilon);

  const FilmArgs& f = a.film;
  const float *step = nullptr, *cond = nullptr;
  if (f.step_table) {
    step = f.step_table + static_cast<size_t>(f.row_step[row]) * f.width;
    cond = f.cond + static_cast<size_t>(row / f.rows_per_env) * f.width;
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int p = threadIdx.x + r * blockDim.x;
    if (p >= packs) break;
    const int channel = group * group_channels + (p % packs_wide) * V;
    Pack<T, V> residual = {}, out;
    if (a.residual)
      residual =
          *reinterpret_cast<const Pack<T, V>*>(static_cast<const T*>(a.residual) + offset(p));
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int c = channel + v;
      float y = (x[r][v] - mean) * inverse * a.weight[c] + a.bias[c];
      if (a.residual && a.residual_first) y += ToFloat(residual.v[v]);
      y = Activate<T>(y, a.activation);
      if (f.step_table) {
        if (f.scale_offset >= 0) y *= step[f.scale_offset + c] + cond[f.scale_offset + c];
        y += step[f.bias_offset + c] + cond[f.bias_offset + c];
      }
      if (a.residual && !a.residual_first) y += ToFloat(residual.v[v]);
      out.v[v] = FromFloat<T>(y);
    }
    *reinterpret_cast<Pack<T, V>*>(static_cast<T*>(a.y) + offset(p)) = out;
  }
}

template <typename T, int V, int R>
void LaunchPacked(const GroupNormArgs& a, int packs, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3(a.groups, a.rows);
  const int threads = ((packs + R - 1) / R + 31) / 32 * 32;
  shape.block = dim3(threads);
  Launch(GroupNormKernel<T, V, R>, shape, stream, "group normalisation", a);
}

template <typename T, int V>
void LaunchVector(const GroupNormArgs& a, cudaStream_t stream) {
  const int packs = a.channels / a.groups / V * a.positions;
  if (packs <= kMaxThreads) return LaunchPacked<T, V, 1>(a, packs, stream);
  if (packs <= 8 * kMaxThreads) return LaunchPacked<T, V, 8>(a, packs, stream);
  throw Unsupported("group normalisation over " + std::to_string(packs * V) +
                    " elements: the GPU kernels take at most " +
                    std::to_string(8 * V * kMaxThreads));
}

template <typename T>
void LaunchTyped(const GroupNormArgs& a, cudaStream_t stream) {
  switch (std::gcd(a.channels / a.groups, 8)) {
    case 8:
      return LaunchVector<T, 8>(a, stream);
    case 4:
      return LaunchVector<T, 4>(a, stream);
    case 2:
      return LaunchVector<T, 2>(a, stream);
    default:
      return LaunchVector<T, 1>(a, stream);
  }
}

}  // namespace

void LaunchGroupNorm(Format format, const GroupNormArgs& args, cudaStream_t stream) {
  switch (format) {
    case Format::kFp16:
      return LaunchTyped<__half>(args, stream);
    case Format::kBf16:
      return LaunchTyped<__nv_bfloat16>(args, stream);
    default:
      return LaunchTyped<float>(args, stream);
  }
}

}  // namespace dp
