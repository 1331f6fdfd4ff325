// Group normalisation with its activation, FiLM and residual, channel-last.
//
// One team for each (row, group): a warp where a lane can hold its share, else a block. A thread
// keeps its share in registers, as packs of V consecutive channels in the storage type, so x is
// read once and y written once. Mean, then the sum of squared differences from it, each by a fixed
// tree over the team: two-pass, no cancellation, no atomics.
// Bytes moved: x, residual and y once; a channel's terms once for all of a thread's positions.

#include <numeric>
#include <string>

#include "kernels/block_sum.cuh"
#include "kernels/group_norm.cuh"
#include "kernels/launch.cuh"

namespace dp {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr int kMaxThreads = 1024;
constexpr int kWarpsPerBlock = 4;  // where a team is a warp

// Sum over the team, the same bits in every thread. `partial` holds 32 floats.
template <bool kWarpTeam>
__device__ __forceinline__ float TeamSum(float x, float* partial) {
  return kWarpTeam ? WarpSum(x) : BlockSum(x, partial);
}

template <int V>
__device__ __forceinline__ Pack<float, V> LoadTerms(const float* at) {
  Pack<float, V> out;
  constexpr int kWide = V < 4 ? V : 4;
#pragma unroll
  for (int v = 0; v < V; v += kWide)
    *reinterpret_cast<Pack<float, kWide>*>(out.v + v) =
        *reinterpret_cast<const Pack<float, kWide>*>(at + v);
  return out;
}

// What becomes of V channels after the mean is known: y = film_scale act((x - mean) scale + bias) +
// film_bias
template <int V, bool kFilm>
struct ChannelTerms {
  float mean;
  Pack<float, V> scale, bias, film_scale, film_bias;

  __device__ __forceinline__ void Load(const GroupNormArgs& a, int row, int channel, float row_mean,
                                       float inverse) {
    mean = row_mean;
    scale = LoadTerms<V>(a.weight + channel);
    bias = LoadTerms<V>(a.bias + channel);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      scale.v[v] *= inverse;
      film_scale.v[v] = 1.0f;
      film_bias.v[v] = 0.0f;
    }
    if (!kFilm) return;
    const FilmArgs& f = a.film;
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

// grid: teams of (row, group). R packs of V channels per thread.
template <typename T, int V, int R, bool kWarpTeam, bool kFilm>
__global__ void __launch_bounds__(kWarpTeam ? 32 * kWarpsPerBlock : kMaxThreads)
    GroupNormKernel(const GroupNormArgs a) {
  __shared__ float partial[32];
  WaitForPredecessor();
  ReleaseSuccessor();
  const int thread = kWarpTeam ? threadIdx.x & 31 : threadIdx.x;
  const int threads = kWarpTeam ? 32 : blockDim.x;
  const int team = kWarpTeam ? blockIdx.x * kWarpsPerBlock + (threadIdx.x >> 5) : blockIdx.x;
  if (team >= a.rows * a.groups) return;
  const int group = team % a.groups, row = team / a.groups;
  const int group_channels = a.channels / a.groups, packs_wide = group_channels / V;
  const int packs = packs_wide * a.positions;
  const size_t base = static_cast<size_t>(row) * a.positions * a.channels + group * group_channels;
  const auto offset = [&](int p) {
    return base + static_cast<size_t>(p / packs_wide) * a.channels + (p % packs_wide) * V;
  };
  Pack<T, V> x[R];
  float sum = 0.0f;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int p = thread + r * threads;
    if (p >= packs) break;
    x[r] = *reinterpret_cast<const Pack<T, V>*>(static_cast<const T*>(a.x) + offset(p));
#pragma unroll
    for (int v = 0; v < V; ++v) sum += ToFloat(x[r].v[v]);
  }
  const float count = static_cast<float>(packs * V);
  const float mean = TeamSum<kWarpTeam>(sum, partial) / count;
  float squares = 0.0f;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (thread + r * threads >= packs) break;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float difference = ToFloat(x[r].v[v]) - mean;
      squares += difference * difference;
    }
  }
  const float inverse = 1.0f / sqrtf(TeamSum<kWarpTeam>(squares, partial) / count + kEpsilon);

  const bool same_channels = threads % packs_wide == 0;  // in all of a thread's packs
  ChannelTerms<V, kFilm> terms;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int p = thread + r * threads;
    if (p >= packs) break;
    if (r == 0 || !same_channels)
      terms.Load(a, row, group * group_channels + p % packs_wide * V, mean, inverse);
    Pack<T, V> residual = {}, out;
    if (a.residual)
      residual =
          *reinterpret_cast<const Pack<T, V>*>(static_cast<const T*>(a.residual) + offset(p));
#pragma unroll
    for (int v = 0; v < V; ++v) {
      float y = __fmaf_rn(ToFloat(x[r].v[v]) - terms.mean, terms.scale.v[v], terms.bias.v[v]);
      if (a.residual && a.residual_first) y += ToFloat(residual.v[v]);
      y = Activate<T>(y, a.activation);
      if (kFilm) y = __fmaf_rn(y, terms.film_scale.v[v], terms.film_bias.v[v]);
      if (a.residual && !a.residual_first) y += ToFloat(residual.v[v]);
      out.v[v] = FromFloat<T>(y);
    }
    *reinterpret_cast<Pack<T, V>*>(static_cast<T*>(a.y) + offset(p)) = out;
  }
}

template <typename T, int V, int R, bool kWarpTeam>
void LaunchPacked(const GroupNormArgs& a, int packs, cudaStream_t stream) {
  LaunchShape shape;
  const int teams = a.rows * a.groups;
  shape.grid = dim3(kWarpTeam ? (teams + kWarpsPerBlock - 1) / kWarpsPerBlock : teams);
  shape.block = dim3(kWarpTeam ? 32 * kWarpsPerBlock : ((packs + R - 1) / R + 31) / 32 * 32);
  const auto kernel = a.film.step_table ? GroupNormKernel<T, V, R, kWarpTeam, true>
                                        : GroupNormKernel<T, V, R, kWarpTeam, false>;
  Launch(kernel, shape, stream, "group normalisation", a);
}

template <typename T, int V>
void LaunchVector(const GroupNormArgs& a, cudaStream_t stream) {
  const int packs = a.channels / a.groups / V * a.positions;
  if (packs <= 32) return LaunchPacked<T, V, 1, true>(a, packs, stream);
  if (packs <= 64) return LaunchPacked<T, V, 2, true>(a, packs, stream);
  if (packs <= 4 * kMaxThreads) return LaunchPacked<T, V, 4, false>(a, packs, stream);
  if (packs <= 8 * kMaxThreads) return LaunchPacked<T, V, 8, false>(a, packs, stream);
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
