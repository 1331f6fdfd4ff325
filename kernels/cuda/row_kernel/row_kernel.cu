// The row kernel: a U-Net pass, or a chain of them, of each row in one cluster of CTAs. Bound by
// the latency of a layer inside a CTA, and by the weights, which each CTA reads from L2 in every
// pass.
//
// A layer is: multiply the input, which stands in shared memory whole, with the CTA's slice of the
// out channels; add up what the warps have; norm, Mish, FiLM, residual; store the activations in
// the shared memory of every CTA of the cluster; a barrier. Weights flow through a ring in shared
// memory meanwhile (weight_stream.cuh), so the bytes of a pass and its latencies overlap.
// Bytes: all weights / (CTAs of a cluster) from L2 for each CTA and pass.

#include <algorithm>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/row_kernel/epilogue.cuh"
#include "kernels/cuda/row_kernel/products.cuh"

namespace mjp::row_kernel {
namespace {

// What a CTA's functions share.
struct Cta {
  const Args& a;
  uint8_t* shared;
  int row, rank;

  __device__ __forceinline__ const Layer& LayerAt(int i) const {
    return reinterpret_cast<const Layer*>(shared + a.shared.layers)[i];
  }
  __device__ __forceinline__ int Elements() const { return a.length * a.action_dim; }
};

// All threads of the cluster: what was stored before is seen after.
template <bool kCluster>
__device__ __forceinline__ void SyncCluster() {
  if constexpr (kCluster) {
    ClusterBarrier();
  } else {
    __syncthreads();
  }
}

// The epilogue of the CTA's norm groups; `terms`: of the warp's first one.
template <typename T, bool kCluster, int kPairs>
__device__ __forceinline__ void RunGroups(const Cta& cta, const Layer& s, const FilmRows& film,
                                          ChannelTerms (&terms)[kMaxLanePairs]) {
  const int warp = threadIdx.x / 32;
#pragma unroll 1
  for (int group = warp; group < s.groups; group += kWarps) {
    if (group != warp) LoadTerms<kPairs>(s, cta.a.terms, film, cta.rank, group, terms);
    RunGroup<T, kCluster, kPairs>(s, cta.a.shared, group, terms, cta.rank, cta.a.ctas, cta.shared);
  }
}

// Layer `i` and the terms of the warp's first norm group; the last layer, the head, has none.
__device__ __forceinline__ void LoadLayer(const Cta& cta, int i, const FilmRows& film, Layer& s,
                                          ChannelTerms (&terms)[kMaxLanePairs]) {
  const int warp = threadIdx.x / 32;
  s = cta.LayerAt(i);
  if (i + 1 == cta.a.layer_count || warp >= s.groups) return;
  LoadTerms<1>(s, cta.a.terms, film, cta.rank, warp, terms);
  if (s.lane_pairs > 1) LoadTerms<kMaxLanePairs>(s, cta.a.terms, film, cta.rank, warp, terms);
}

// All layers; the partial sums of the last one, the head, are left in shared memory. What a layer
// needs besides its input is loaded before the barrier in front of it.
template <Format F, bool kCluster, int kChunks>
__device__ __forceinline__ void RunPass(const Cta& cta, const FilmRows& film,
                                        WeightStream<kChunks>& weights) {
  using T = Storage<F>;
  Layer s;
  ChannelTerms terms[kMaxLanePairs];
  LoadLayer(cta, 0, film, s, terms);
#pragma unroll 1
  for (int i = 1;; ++i) {
    if (s.n_tiles == 1) MultiplyTiles<F, 1>(weights, s, cta.a.shared, cta.shared);
    if (s.n_tiles == 2) MultiplyTiles<F, 2>(weights, s, cta.a.shared, cta.shared);
    if (s.n_tiles == 4) MultiplyTiles<F, 4>(weights, s, cta.a.shared, cta.shared);
    __syncthreads();
    if (i == cta.a.layer_count) return;
    if (s.lane_pairs == 1) RunGroups<T, kCluster, 1>(cta, s, film, terms);
    if (s.lane_pairs == 2) RunGroups<T, kCluster, 2>(cta, s, film, terms);
    if (s.lane_pairs == 4) RunGroups<T, kCluster, 4>(cta, s, film, terms);
    LoadLayer(cta, i, film, s, terms);
    SyncCluster<kCluster>();
  }
}

// A thread's element of x, and what the sampler's step needs of it.
struct Element {
  int position, action;
  bool mine;
  float bias = 0;  // of the head
  float x = 0, noise = 0;
  DenoiseStep step;

  __device__ __forceinline__ explicit Element(const Args& a)
      : position(static_cast<int>(threadIdx.x) / a.action_dim),
        action(static_cast<int>(threadIdx.x) % a.action_dim),
        mine(position < a.length) {
    if (mine) bias = LoadEarly(a.head_bias + action);
  }
};

// The network's output at an element.
__device__ __forceinline__ float OutputAt(const Cta& cta, const Element& element) {
  const Layer& head = cta.LayerAt(cta.a.layer_count - 1);
  const int pitch = head.n_tiles * kPositionTile;
  const float* sums = reinterpret_cast<const float*>(cta.shared + cta.a.shared.sums) +
                      element.action * pitch + element.position;
  float sum = sums[0];
  for (int k = 1; k < 1 << head.k_log2; ++k) sum += sums[k * head.tiles * 16 * pitch];
  return sum + element.bias;
}

// Puts x into the input of the first layer.
template <typename T>
__device__ __forceinline__ void PutX(const Cta& cta, const Element& element, float x) {
  *reinterpret_cast<T*>(cta.shared + cta.a.input + element.position * cta.a.input_pitch +
                        element.action * 2) = FromFloat<T>(x);
}

// Brings a CTA's tables into shared memory, and zeros into the activations: their halos stay so.
__device__ __forceinline__ void SetUp(const Cta& cta) {
  const Args& a = cta.a;
  const auto copy = [&](int to, const void* from, int words) {
    for (int i = threadIdx.x; i < words; i += kThreads)
      reinterpret_cast<uint32_t*>(cta.shared + to)[i] = static_cast<const uint32_t*>(from)[i];
  };
  copy(a.shared.layers, a.layers, a.layer_count * static_cast<int>(sizeof(Layer) / 4));
  copy(a.shared.steps, a.steps, a.step_count / 2);
  for (int at = a.shared.activations + threadIdx.x * 16; at < a.shared.sums; at += kThreads * 16)
    *reinterpret_cast<uint4*>(cta.shared + at) = make_uint4(0, 0, 0, 0);
}

// Puts the row's x at the start into the input.
template <typename T>
__device__ __forceinline__ void LoadX(const Cta& cta, Element& element) {
  const Args& a = cta.a;
  if (!element.mine) return;
  if (a.x_storage) {
    const size_t at =
        (static_cast<size_t>(cta.row) * a.length + element.position) * a.storage_pitch +
        element.action;
    element.x = ToFloat(static_cast<const T*>(a.x_storage)[at]);
  } else {
    element.x = a.x[static_cast<size_t>(cta.row) * cta.Elements() + threadIdx.x];
  }
  PutX<T>(cta, element, element.x);
}

// Loads what EndPass reads, before the pass.
__device__ __forceinline__ void LoadStep(const Cta& cta, int k, Element& element) {
  const Args& a = cta.a;
  if (a.x_storage) return;
  element.step = a.schedule[k];
  if (a.noise && element.mine)
    element.noise = LoadEarly(
        a.noise + (static_cast<size_t>(k) * a.rows + cta.row) * cta.Elements() + threadIdx.x);
}

// After a pass: the network's output, or the sampler's step `k`.
template <typename T>
__device__ __forceinline__ void EndPass(const Cta& cta, int k, Element& element) {
  const Args& a = cta.a;
  if (element.mine) {
    const float output = OutputAt(cta, element);
    const size_t at = static_cast<size_t>(cta.row) * cta.Elements() + threadIdx.x;
    const bool writes = cta.rank == 0 && k + 1 == a.end;
    if (writes) a.output[at] = output;
    if (!a.x_storage) {
      element.x = Denoise(element.step, element.x, output, element.noise);
      PutX<T>(cta, element, element.x);
      if (writes) a.x[at] = element.x;
    }
  }
  const bool stamps = blockIdx.x == 0 && cta.rank == 0 && threadIdx.x == 0;
  if (stamps && k - a.begin < a.timestamps.capacity) {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    a.timestamps.times[k - a.begin] = now;
  }
}

// grid: (rows, 1, CTAs of a cluster)
template <Format F, bool kCluster, int kChunks>
__global__ void __launch_bounds__(kThreads, 1) RowKernel(const __grid_constant__ Args a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const Cta cta = {a, shared, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.z)};
  const int warp = threadIdx.x / 32;
  const int2 stream = a.streams[cta.rank * kWarps + warp];
  WeightStream<kChunks> weights(a.weights + static_cast<size_t>(stream.x) * kFragmentBytes,
                                stream.y, SharedAddress(shared) + warp * kChunks * kChunkBytes,
                                static_cast<int>(threadIdx.x % 32));
  SetUp(cta);
  __syncthreads();
  WaitForPredecessor();
  ReleaseSuccessor();
  Element element(a);
  LoadX<Storage<F>>(cta, element);
  SyncCluster<kCluster>();
  const float* cond =
      a.film.cond + static_cast<size_t>(cta.row / a.film.rows_per_env) * a.film.width;
  int timestep = a.x_storage ? a.row_step[cta.row] : a.schedule[a.begin].timestep;
#pragma unroll 1
  for (int k = a.begin; k < a.end; ++k) {
    const FilmRows film = {a.film.step_table + static_cast<size_t>(timestep) * a.film.width, cond};
    LoadStep(cta, k, element);
    if (k + 1 < a.end) timestep = a.schedule[k + 1].timestep;
    RunPass<F, kCluster>(cta, film, weights);
    EndPass<Storage<F>>(cta, k, element);
    __syncthreads();
  }
  WaitCopies<0>();
}

template <Format F, bool kCluster, int kChunks>
void LaunchForm(const Args& args, cudaStream_t stream) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      RowKernel<F, kCluster, kChunks>, cudaFuncAttributeMaxDynamicSharedMemorySize,
      GpuTraits::Current().shared_bytes);
  CheckCuda(allowed, "shared memory of the row kernel");
  LaunchShape shape;
  shape.grid = dim3(args.rows, 1, args.ctas);
  shape.block = dim3(kThreads);
  shape.cluster_z = args.ctas;
  shape.shared_bytes = args.shared.end;
  Launch(RowKernel<F, kCluster, kChunks>, shape, stream, "row kernel", args);
}

template <Format F>
void LaunchFormat(const Args& args, cudaStream_t stream) {
  const bool deep = args.ring_chunks == kDeepRing;
  if (args.ctas > 1)
    return deep ? LaunchForm<F, true, kDeepRing>(args, stream)
                : LaunchForm<F, true, kShallowRing>(args, stream);
  deep ? LaunchForm<F, false, kDeepRing>(args, stream)
       : LaunchForm<F, false, kShallowRing>(args, stream);
}

// grid: (layers)
__global__ void __launch_bounds__(kThreads) GatherTerms(const TermSource* sources, float4* terms) {
  const TermSource s = sources[blockIdx.x];
  const auto term = [](const float* from, int channel) { return from ? from[channel] : 0.0f; };
  for (int c = threadIdx.x; c < s.channels; c += kThreads)
    terms[s.first + c] =
        make_float4(term(s.bias, c), term(s.scale, c), term(s.shift, c), term(s.shortcut_bias, c));
}

// grid: (fragments); a lane has 8 values of a fragment
template <Format F>
__global__ void __launch_bounds__(32)
    GatherFragments(const FragmentSource* sources, uint4* fragments) {
  using T = Storage<F>;
  const FragmentSource s = sources[blockIdx.x];
  const int lane = threadIdx.x;
  uint4 out = make_uint4(0, 0, 0, 0);
  if (s.from && s.o_stride == 0) {
    out = static_cast<const uint4*>(s.from)[lane];
  } else if (s.from) {
    T values[8];
    for (int v = 0; v < 8; ++v) {
      // register r = v / 2: row lane / 4 + 8 (r & 1), columns from 8 (r / 2) + 2 (lane % 4)
      const int r = v / 2, o = lane / 4 + 8 * (r & 1), i = 8 * (r / 2) + 2 * (lane % 4) + v % 2;
      const bool valid = o < s.o_count && i < s.i_count;
      values[v] = FromFloat<T>(
          valid ? static_cast<const float*>(s.from)[o * s.o_stride + i * s.i_stride] : 0.0f);
    }
    out = reinterpret_cast<const uint4&>(values);
  }
  fragments[static_cast<size_t>(blockIdx.x) * 32 + lane] = out;
}

}  // namespace

void LaunchGatherTerms(const TermSource* sources, int count, float4* terms) {
  GatherTerms<<<count, kThreads>>>(sources, terms);
  CheckCuda(cudaGetLastError(), "packing of weights");
}

void LaunchGatherFragments(Format format, const FragmentSource* sources, int count, void* weights) {
  auto* to = static_cast<uint4*>(weights);
  if (format == Format::kFp16) {
    GatherFragments<Format::kFp16><<<count, 32>>>(sources, to);
  } else {
    GatherFragments<Format::kBf16><<<count, 32>>>(sources, to);
  }
  CheckCuda(cudaGetLastError(), "packing of weights");
}

void LaunchRowKernel(Format format, const Args& args, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(args, stream);
  if (format == Format::kBf16) return LaunchFormat<Format::kBf16>(args, stream);
  throw Unsupported("the row kernel has fp16 and bf16 kernels alone");
}

}  // namespace mjp::row_kernel
