// Group normalisation with its activation, FiLM and residual, channel-last.
//
// One reduction group for each (row, group): a warp where a lane can hold its part, a cluster of
// blocks where the groups are fewer than multiprocessors, else a block. A thread keeps its part in
// registers, as packs of V consecutive channels in the storage type, so x is read once and y
// written once, and loads its channels' terms before the sums. Mean, then the sum of squared
// differences from it, each by a fixed tree over the block: two-pass, no cancellation, no atomics.
// The blocks of a cluster put theirs together in the order of their ranks. Bytes moved: x, residual
// and y once; a channel's terms once for all of a thread's positions.

#include <numeric>
#include <string>

#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/cuda/primitives/block_sum.cuh"
#include "kernels/cuda/primitives/launch.cuh"

namespace mjp {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr int kMaxThreads = 1024;
constexpr int kWarpsPerBlock = 4;  // where a reduction group is a warp
constexpr int kMaxClusterThreads = 512;

enum class Reduction { kWarp, kBlock, kCluster };

constexpr int MostThreads(Reduction reduction) {
  return reduction == Reduction::kWarp      ? 32 * kWarpsPerBlock
         : reduction == Reduction::kCluster ? kMaxClusterThreads
                                            : kMaxThreads;
}

// Of `count` values: their sum, and the sum of their squared differences from their mean.
struct Moments {
  float sum, squares, count;
};

// Those of the cluster from those of its blocks, the same bits in every thread.
__device__ __forceinline__ Moments ClusterMoments(const Moments& mine) {
  __shared__ float4 shared;
  if (threadIdx.x == 0) shared = make_float4(mine.sum, mine.squares, mine.count, 0);
  ClusterBarrier();
  Moments all = {};
  for (unsigned r = 0; r < gridDim.z; ++r) {
    const float4 part = LoadFromBlock(SharedAddress(&shared), r);
    if (part.z == 0) break;  // more threads than values
    const float count = all.count + part.z;
    if (r > 0) {
      const float apart = part.x / part.z - all.sum / all.count;
      all.squares += apart * apart * all.count * part.z / count;
    }
    all.sum += part.x, all.squares += part.y, all.count = count;
  }
  return all;
}

// Sum over the warp or the block, the same bits in every thread. `partial` holds 32 floats.
template <Reduction kReduction>
__device__ __forceinline__ float ReductionSum(float x, float* partial) {
  return kReduction == Reduction::kWarp ? WarpSum(x) : BlockSum(x, partial);
}

template <int V>
__device__ __forceinline__ Pack<float, V> LoadTerms(const float* at) {
  Pack<float, V> out;
  constexpr int kVector = V < 4 ? V : 4;
#pragma unroll
  for (int v = 0; v < V; v += kVector)
    *reinterpret_cast<Pack<float, kVector>*>(out.v + v) =
        *reinterpret_cast<const Pack<float, kVector>*>(at + v);
  return out;
}

// Packs of one or two channels are rare: one kernel asks whether there is FiLM, and wider ones
// know.
template <int V>
constexpr bool kAsksForFilm = V <= 2;

// What becomes of V channels: y = film_scale act((x - mean) / deviation weight + bias) + film_bias
template <int V, bool kFilm>
struct ChannelTerms {
  Pack<float, V> weight, bias, film_scale, film_bias;

  __device__ __forceinline__ void Load(const GroupNormArgs& a, int row, int channel) {
    weight = LoadTerms<V>(a.weight + channel);
    bias = LoadTerms<V>(a.bias + channel);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      film_scale.v[v] = 1.0f;
      film_bias.v[v] = 0.0f;
    }
    const FilmArgs& f = a.film;
    if (!kFilm || (kAsksForFilm<V> && f.step_table == nullptr)) return;
    const float* step = f.step_table + static_cast<size_t>(f.row_step[row]) * f.width + channel;
    const float* cond = f.cond + static_cast<size_t>(row / f.rows_per_env) * f.width + channel;
    const auto sum = [&](int offset, Pack<float, V>& out) {
      const auto s = LoadTerms<V>(step + offset), c = LoadTerms<V>(cond + offset);
#pragma unroll
      for (int v = 0; v < V; ++v) out.v[v] = s.v[v] + c.v[v];
    };
    if (f.scale_offset >= 0) sum(f.scale_offset, film_scale);
    sum(f.bias_offset, film_bias);
  }
};

// grid: (reduction groups, 1, blocks of one). R packs of V channels per thread.
template <typename T, int V, int R, Reduction kReduction, bool kFilm>
__global__ void __launch_bounds__(MostThreads(kReduction)) GroupNormKernel(const GroupNormArgs a) {
  static_assert(kReduction != Reduction::kCluster || R == 1);
  __shared__ float partial[32];
  ReleaseSuccessor();
  WaitForPredecessor();
  constexpr bool kWarpReduction = kReduction == Reduction::kWarp;
  const int thread = kWarpReduction ? threadIdx.x & 31 : blockIdx.z * blockDim.x + threadIdx.x;
  const int threads = kWarpReduction ? 32 : gridDim.z * blockDim.x;
  const int index = kWarpReduction ? blockIdx.x * kWarpsPerBlock + (threadIdx.x >> 5) : blockIdx.x;
  if (index >= a.rows * a.groups) return;
  const int group = index % a.groups, row = index / a.groups;
  const int group_channels = a.channels / a.groups, packs_per_position = group_channels / V;
  const int packs = packs_per_position * a.positions;
  const size_t base = static_cast<size_t>(row) * a.positions * a.channels + group * group_channels;
  const auto offset = [&](int p) {
    return base + static_cast<size_t>(p / packs_per_position) * a.channels +
           (p % packs_per_position) * V;
  };
  Pack<T, V> x[R];
  ChannelTerms<V, kFilm> terms;
  float sum = 0.0f;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int p = thread + r * threads;
    if (p >= packs) break;
    x[r] = *reinterpret_cast<const Pack<T, V>*>(static_cast<const T*>(a.x) + offset(p));
    if (r == 0) terms.Load(a, row, group * group_channels + p % packs_per_position * V);
#pragma unroll
    for (int v = 0; v < V; ++v) sum += ToFloat(x[r].v[v]);
  }
  const int here = kReduction == Reduction::kCluster  // packs of this block
                       ? min(max(packs - static_cast<int>(blockIdx.z * blockDim.x), 0),
                             static_cast<int>(blockDim.x))
                       : packs;
  Moments moments = {ReductionSum<kReduction>(sum, partial), 0, static_cast<float>(here * V)};
  float mean = moments.sum / fmaxf(moments.count, 1.0f), squares = 0.0f;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (thread + r * threads >= packs) break;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float difference = ToFloat(x[r].v[v]) - mean;
      squares += difference * difference;
    }
  }
  moments.squares = ReductionSum<kReduction>(squares, partial);
  if constexpr (kReduction == Reduction::kCluster) {
    moments = ClusterMoments(moments);
    mean = moments.sum / moments.count;
  }
  const float inverse = 1.0f / sqrtf(moments.squares / moments.count + kEpsilon);

  const bool film = kFilm && (!kAsksForFilm<V> || a.film.step_table != nullptr);
  const bool same_channels = threads % packs_per_position == 0;  // in all of a thread's packs
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int p = thread + r * threads;
    if (p >= packs) break;
    if (r > 0 && !same_channels)
      terms.Load(a, row, group * group_channels + p % packs_per_position * V);
    Pack<T, V> residual = {}, out;
    if (a.residual)
      residual =
          *reinterpret_cast<const Pack<T, V>*>(static_cast<const T*>(a.residual) + offset(p));
#pragma unroll
    for (int v = 0; v < V; ++v) {
      float y = __fmaf_rn(ToFloat(x[r].v[v]) - mean, terms.weight.v[v] * inverse, terms.bias.v[v]);
      if (a.residual && a.residual_first) y += ToFloat(residual.v[v]);
      y = Activate<T>(y, a.activation);
      if (film) y = __fmaf_rn(y, terms.film_scale.v[v], terms.film_bias.v[v]);
      if (a.residual && !a.residual_first) y += ToFloat(residual.v[v]);
      out.v[v] = FromFloat<T>(y);
    }
    *reinterpret_cast<Pack<T, V>*>(static_cast<T*>(a.y) + offset(p)) = out;
  }
  // the others may still read this block's moments
  if constexpr (kReduction == Reduction::kCluster) ClusterBarrier();
}

template <typename T, int V, int R, Reduction kReduction>
void LaunchPacked(const GroupNormArgs& a, int packs, int blocks, cudaStream_t stream) {
  LaunchShape shape;
  const int reductions = a.rows * a.groups, share = (packs + R * blocks - 1) / (R * blocks);
  const bool warp = kReduction == Reduction::kWarp;
  shape.grid =
      dim3(warp ? (reductions + kWarpsPerBlock - 1) / kWarpsPerBlock : reductions, 1, blocks);
  shape.block = dim3(warp ? 32 * kWarpsPerBlock : (share + 31) / 32 * 32);
  shape.cluster_z = blocks;
  if constexpr (!kAsksForFilm<V>) {
    if (a.film.step_table == nullptr)
      return Launch(GroupNormKernel<T, V, R, kReduction, false>, shape, stream,
                    "group normalisation", a);
  }
  Launch(GroupNormKernel<T, V, R, kReduction, true>, shape, stream, "group normalisation", a);
}

// Blocks of a cluster that share the work of a reduction group: as many as there are
// multiprocessors for.
int ClusterBlocks(int reductions, const GpuTraits& gpu) {
  if (gpu.ClusterBlocks() < 2) return 1;
  return reductions <= gpu.multiprocessors ? 2 : 1;
}

template <typename T, int V>
void LaunchVector(const GroupNormArgs& a, cudaStream_t stream) {
  const int packs = a.channels / a.groups / V * a.positions;
  if (packs <= 32) return LaunchPacked<T, V, 1, Reduction::kWarp>(a, packs, 1, stream);
  if (packs <= 64) return LaunchPacked<T, V, 2, Reduction::kWarp>(a, packs, 1, stream);
  const int blocks = ClusterBlocks(a.rows * a.groups, GpuTraits::Current());
  if (blocks > 1 && packs <= blocks * kMaxClusterThreads)
    return LaunchPacked<T, V, 1, Reduction::kCluster>(a, packs, blocks, stream);
  if (packs <= 4 * kMaxThreads)
    return LaunchPacked<T, V, 4, Reduction::kBlock>(a, packs, 1, stream);
  if (packs <= 8 * kMaxThreads)
    return LaunchPacked<T, V, 8, Reduction::kBlock>(a, packs, 1, stream);
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

}  // namespace mjp
