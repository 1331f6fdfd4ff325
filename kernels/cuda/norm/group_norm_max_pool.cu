// Group normalisation, ReLU and 3x3 max-pool of stride 2 in one launch.
//
// A cluster takes one group of one frame, and each of its CTAs a strip of rows: they come into
// shared memory once, with the row above (cp.async, 16 bytes, a position's channels of the group
// side by side). Moments of the strips are put together in their order. With many frames, and where
// GPU or code has no clusters, one CTA has all rows. Normalisation keeps the order of a channel's
// values, or turns it round, so a pooled value is that of the largest or of the smallest of nine.
// Bytes moved: x once, and a quarter of them for y; the normalised map, which is the widest of the
// encoder, is never written.

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/norm/group_norm_max_pool.cuh"
#include "kernels/cuda/norm/moments.cuh"
#include "kernels/cuda/primitives/block_sum.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/primitives/launch.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 512;
constexpr int kMostStrips = 8;  // CTAs of a cluster
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

// Rows of a CTA: those that it pools, those whose moments are its share, and the first one that it
// has in shared memory.
struct Strip {
  int pooled_begin, pooled_end, begin, end, first;

  __device__ __forceinline__ Strip(const MaxPoolArgs& p, int index, int strips) {
    pooled_begin = index * p.out_h / strips, pooled_end = (index + 1) * p.out_h / strips;
    begin = 2 * pooled_begin, end = min(2 * pooled_end, p.in_h);
    first = max(begin - 1, 0);
  }
};

// The moments of a group, of which this CTA has `packs` of its strip.
template <typename T>
__device__ __forceinline__ Moment GroupMoments(const Pack<T, kPack>* maps, int packs) {
  __shared__ float2 partial[32];
  __shared__ Moment of_strips[kMostStrips];
  const float pilot = ToFloat(maps[0].v[0]);
  float2 sums = make_float2(0.0f, 0.0f);
  for (int i = threadIdx.x; i < packs; i += kThreads) {
    const Pack<T, kPack> v = maps[i];
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      const float difference = ToFloat(v.v[e]) - pilot;
      sums.x += difference, sums.y = __fmaf_rn(difference, difference, sums.y);
    }
  }
  sums = BlockSum(sums, partial);
  const Gathered here = {pilot, static_cast<float>(packs * kPack), sums.x, sums.y};
  const int strips = static_cast<int>(gridDim.z), to = static_cast<int>(threadIdx.x);
  if (strips == 1) return here.All();
  WaitAtClusterBarrier();
  if (to < strips) {
    const Moment mine = here.All();
    StoreInCta(InCta(SharedAddress(&of_strips[blockIdx.z]), to),
               make_float4(mine.count, mine.mean, mine.squares, 0.0f));
  }
  ClusterBarrier();
  Gathered all = {of_strips[0].mean};
  for (int i = 0; i < strips; ++i) all.Add(of_strips[i]);
  return all.All();
}

// grid: (groups, frames, CTAs of a cluster)
template <typename T>
__global__ void __launch_bounds__(kThreads) GroupNormMaxPoolKernel(const GroupNormMaxPoolArgs a) {
  using Values = Pack<T, kPack>;
  constexpr int kCopies = sizeof(Values) / 16;
  extern __shared__ __align__(16) uint8_t shared[];
  const Values* maps = reinterpret_cast<const Values*>(shared);
  const MaxPoolArgs& p = a.pool;
  const Strip strip(p, static_cast<int>(blockIdx.z), static_cast<int>(gridDim.z));
  const int packs = p.channels / a.groups / kPack, row_packs = p.in_w * packs;
  const int channel0 = blockIdx.x * packs * kPack, frame = blockIdx.y;
  const T* x = static_cast<const T*>(p.x) +
               (size_t{1} * frame * p.in_h + strip.first) * p.in_w * p.channels + channel0;
  // whoever stores in another CTA's shared memory waits until that CTA runs
  if (gridDim.z > 1) ArriveAtClusterBarrierRelaxed();
  WaitForPredecessor();
  ReleaseSuccessor();
  for (int i = threadIdx.x; i < (strip.end - strip.first) * row_packs * kCopies; i += kThreads) {
    const int pack = i / kCopies % packs, position = i / kCopies / packs;
    CopyAsync16(
        SharedAddress(shared) + i * 16,
        x + size_t{1} * position * p.channels + pack * kPack + i % kCopies * (16 / sizeof(T)),
        true);
  }
  CommitCopies();
  WaitCopies<0>();
  __syncthreads();
  const Moment moments = GroupMoments(maps + (strip.begin - strip.first) * row_packs,
                                      (strip.end - strip.begin) * row_packs);
  const float mean = moments.mean,
              inverse = 1.0f / sqrtf(moments.squares / moments.count + kEpsilon);

  T* y = static_cast<T*>(p.y) +
         (size_t{1} * frame * p.out_h + strip.pooled_begin) * p.out_w * p.channels + channel0;
  const int pooled = (strip.pooled_end - strip.pooled_begin) * p.out_w * packs;
  for (int i = threadIdx.x; i < pooled; i += kThreads) {
    const int pack = i % packs, ox = i / packs % p.out_w, oy = i / packs / p.out_w;
    const int channel = channel0 + pack * kPack, row = (strip.pooled_begin + oy) * 2;
    const auto at = [&](int iy, int ix) -> const Values& {
      return maps[((iy - strip.first) * p.in_w + ix) * packs + pack];
    };
    Extremes<T> window = {at(row, ox * 2), at(row, ox * 2)};
    for (int iy = max(row - 1, 0); iy <= min(row + 1, p.in_h - 1); ++iy)
      for (int ix = max(ox * 2 - 1, 0); ix <= min(ox * 2 + 1, p.in_w - 1); ++ix)
        window.Add(at(iy, ix));
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

// A power of two, each with a row to pool; no more CTAs than multiprocessors, so with many frames
// one.
int Strips(const GroupNormMaxPoolArgs& a) {
  const GpuTraits& gpu = GpuTraits::Current();
  const int most = std::min({kMostStrips, gpu.ClusterBlocks(), a.pool.out_h,
                             gpu.multiprocessors / (a.groups * a.pool.frames)});
  int strips = 1;
  while (2 * strips <= most) strips *= 2;
  return strips;
}

size_t SharedBytes(Format format, const GroupNormMaxPoolArgs& a) {
  const int strips = Strips(a), rows = (a.pool.out_h + strips - 1) / strips;
  return FormatBytes(format) * std::min(2 * rows + 1, a.pool.in_h) * a.pool.in_w *
         (a.pool.channels / a.groups);
}

template <typename T>
void LaunchTyped(const GroupNormMaxPoolArgs& a, size_t shared_bytes, cudaStream_t stream) {
  constexpr int kStatic = 1024;  // of its shared memory, at most
  AllowShared(GroupNormMaxPoolKernel<T>, GpuTraits::Current().shared_bytes - kStatic,
              "shared memory of norm and pool");
  LaunchShape shape;
  shape.cluster_z = Strips(a);
  shape.grid = dim3(a.groups, a.pool.frames, shape.cluster_z);
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
