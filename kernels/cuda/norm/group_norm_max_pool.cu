// Group normalisation, ReLU and 3x3 max-pool of stride 2 in one launch.
//
// A block takes one group of one frame: its maps come into shared memory once (cp.async, 16 bytes,
// a position's channels of the group side by side), where the mean, the squared differences from it
// and the pooled values are read from. Normalisation keeps the order of a channel's values, or
// turns it round, so a pooled value is that of the largest or of the smallest of nine. Bytes moved:
// x once, and a quarter of them for y; the normalised map, which is the widest of the encoder, is
// never written.

#include <type_traits>

#include "kernels/cuda/norm/group_norm_max_pool.cuh"
#include "kernels/cuda/primitives/block_sum.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/primitives/launch.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 512;
constexpr int kPack = 8;
constexpr float kEpsilon = 1e-5f;

// The larger and the smaller of each two elements; 16-bit ones in pairs.
template <typename T>
struct Extremes {
  using Values = Pack<T, kPack>;
  Values most, least;

  __device__ __forceinline__ void Add(const Values& v) {
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int e = 0; e < kPack; ++e)
        most.v[e] = fmaxf(most.v[e], v.v[e]), least.v[e] = fminf(least.v[e], v.v[e]);
    } else {
      using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
      auto* high = reinterpret_cast<Pair*>(most.v);
      auto* low = reinterpret_cast<Pair*>(least.v);
      const auto* in = reinterpret_cast<const Pair*>(v.v);
#pragma unroll
      for (int e = 0; e < kPack / 2; ++e)
        high[e] = __hmax2(high[e], in[e]), low[e] = __hmin2(low[e], in[e]);
    }
  }
};

// grid: (groups, frames)
template <typename T>
__global__ void __launch_bounds__(kThreads) GroupNormMaxPoolKernel(const GroupNormMaxPoolArgs a) {
  using Values = Pack<T, kPack>;
  constexpr int kCopies = sizeof(Values) / 16;
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ float partial[32];
  const Values* maps = reinterpret_cast<const Values*>(shared);
  const MaxPoolArgs& p = a.pool;
  const int packs = p.channels / a.groups / kPack, positions = p.in_h * p.in_w;
  const int channel0 = blockIdx.x * packs * kPack, frame = blockIdx.y;
  const T* x = static_cast<const T*>(p.x) + size_t{1} * frame * positions * p.channels + channel0;
  WaitForPredecessor();
  ReleaseSuccessor();
  for (int i = threadIdx.x; i < positions * packs * kCopies; i += kThreads) {
    const int pack = i / kCopies % packs, position = i / kCopies / packs;
    CopyAsync16(
        SharedAddress(shared) + i * 16,
        x + size_t{1} * position * p.channels + pack * kPack + i % kCopies * (16 / sizeof(T)),
        true);
  }
  CommitCopies();
  WaitCopies<0>();
  __syncthreads();

  const float count = static_cast<float>(positions * packs * kPack);
  float sum = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < positions * packs; i += kThreads) {
    const Values v = maps[i];
#pragma unroll
    for (int e = 0; e < kPack; ++e) sum += ToFloat(v.v[e]);
  }
  const float mean = BlockSum(sum, partial) / count;
  for (int i = threadIdx.x; i < positions * packs; i += kThreads) {
    const Values v = maps[i];
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      const float difference = ToFloat(v.v[e]) - mean;
      squares += difference * difference;
    }
  }
  const float inverse = 1.0f / sqrtf(BlockSum(squares, partial) / count + kEpsilon);

  T* y = static_cast<T*>(p.y) + size_t{1} * frame * p.out_h * p.out_w * p.channels + channel0;
  for (int i = threadIdx.x; i < p.out_h * p.out_w * packs; i += kThreads) {
    const int pack = i % packs, ox = i / packs % p.out_w, oy = i / packs / p.out_w;
    const int channel = channel0 + pack * kPack;
    const Values middle = maps[(oy * 2 * p.in_w + ox * 2) * packs + pack];
    Extremes<T> window = {middle, middle};
    for (int iy = max(oy * 2 - 1, 0); iy <= min(oy * 2 + 1, p.in_h - 1); ++iy)
      for (int ix = max(ox * 2 - 1, 0); ix <= min(ox * 2 + 1, p.in_w - 1); ++ix)
        window.Add(maps[(iy * p.in_w + ix) * packs + pack]);
    Values out;
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      const float scale = a.weight[channel + e] * inverse;
      const float x = ToFloat(scale < 0 ? window.least.v[e] : window.most.v[e]);
      out.v[e] = FromFloat<T>(fmaxf(__fmaf_rn(x - mean, scale, a.bias[channel + e]), 0.0f));
    }
    *reinterpret_cast<Values*>(y + size_t{1} * (oy * p.out_w + ox) * p.channels + pack * kPack) =
        out;
  }
}

size_t SharedBytes(Format format, const GroupNormMaxPoolArgs& a) {
  return FormatBytes(format) * a.pool.in_h * a.pool.in_w * (a.pool.channels / a.groups);
}

template <typename T>
void LaunchTyped(const GroupNormMaxPoolArgs& a, size_t shared_bytes, cudaStream_t stream) {
  static const cudaError_t allowed =
      cudaFuncSetAttribute(GroupNormMaxPoolKernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           GpuTraits::Current().shared_bytes - 1024);  // the rest is static
  CheckCuda(allowed, "shared memory of norm and pool");
  LaunchShape shape;
  shape.grid = dim3(a.groups, a.pool.frames);
  shape.block = dim3(kThreads);
  shape.shared_bytes = shared_bytes;
  Launch(GroupNormMaxPoolKernel<T>, shape, stream, "norm and pool", a);
}

}  // namespace

bool GroupNormMaxPoolSupports(Format format, const GroupNormMaxPoolArgs& a) {
  constexpr int kMostFrames = 65535;  // limit of the grid's second dimension
  return a.groups > 0 && a.pool.channels / a.groups % kPack == 0 && a.pool.frames <= kMostFrames &&
         SharedBytes(format, a) + 1024 <= static_cast<size_t>(GpuTraits::Current().shared_bytes);
}

void LaunchGroupNormMaxPool(Format format, const GroupNormMaxPoolArgs& a, cudaStream_t stream) {
  const size_t bytes = SharedBytes(format, a);
  if (format == Format::kFp16) return LaunchTyped<__half>(a, bytes, stream);
  if (format == Format::kBf16) return LaunchTyped<__nv_bfloat16>(a, bytes, stream);
  LaunchTyped<float>(a, bytes, stream);
}

}  // namespace mjp
