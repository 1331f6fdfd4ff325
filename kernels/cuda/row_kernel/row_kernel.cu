// The row kernel: a U-Net pass, or a chain of them, of each row in one cluster of CTAs. Bound by
// the latency of a layer inside a CTA, and by the weights, which each CTA reads from L2 in every
// pass.
//
// A layer is: multiply the input, which stands in shared memory whole, with the CTA's slice of the
// out channels; add up what the warps have; norm, Mish, FiLM, residual; store the activations in
// the shared memory of every CTA of the cluster; a barrier. Weights flow through a ring in shared
// memory meanwhile (weight_pipeline.cuh), so the bytes of a pass and its latencies overlap.
// Bytes: all weights / (CTAs of a cluster) from L2 for each CTA and pass.

#include <algorithm>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/row_kernel/roles.cuh"

namespace mjp::row_kernel {
namespace {

// A thread's element of x, and what the sampler's step needs of it.
struct Element {
  int position, action;
  bool mine;
  float bias = 0;  // of the head
  float x = 0, noise = 0;
  const float* sums;       // of the head
  int parts, part_floats;  // of them, and from each to the next
  DenoiseStep step;

  __device__ __forceinline__ explicit Element(const Cta& cta)
      : position(static_cast<int>(threadIdx.x) / cta.a.action_dim),
        action(static_cast<int>(threadIdx.x) % cta.a.action_dim),
        mine(position < cta.a.length) {
    const Layer& head = cta.LayerAt(cta.a.layer_count - 1);
    const int pitch = head.n_tiles * kPositionTile;
    sums =
        reinterpret_cast<const float*>(cta.shared + cta.a.shared.sums) + action * pitch + position;
    parts = 1 << head.k_log2, part_floats = head.tiles * kBlockChannels * pitch;
    if (mine) bias = LoadNow(cta.a.head_bias + action);
  }

  // The network's output.
  __device__ __forceinline__ float Output() const {
    float part[kWarps] = {};
#pragma unroll
    for (int k = 0; k < kWarps; ++k)
      if (k < parts) part[k] = sums[k * part_floats];
    float sum = part[0];
#pragma unroll
    for (int k = 1; k < kWarps; ++k)
      if (k < parts) sum += part[k];
    return sum + bias;
  }
};

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
    element.noise = LoadNow(a.noise + (static_cast<size_t>(k) * a.rows + cta.row) * cta.Elements() +
                            threadIdx.x);
}

// After a pass: the network's output, or the sampler's step `k`.
template <typename T>
__device__ __forceinline__ void EndPass(const Cta& cta, int k, Element& element) {
  const Args& a = cta.a;
  if (element.mine) {
    const float output = element.Output();
    const size_t at = static_cast<size_t>(cta.row) * cta.Elements() + threadIdx.x;
    const bool writes = cta.rank == 0 && k + 1 == a.end;
    if (writes) a.output[at] = output;
    if (!a.x_storage) {
      element.x = Denoise(element.step, element.x, output, element.noise);
      PutX<T>(cta, element, element.x);
      if (writes) a.x[at] = element.x;
    }
  }
  const bool takes_time = blockIdx.x == 0 && cta.rank == 0 && threadIdx.x == 0;
  if (takes_time && k - a.begin < a.timestamps.capacity)
    a.timestamps.times[k - a.begin] = GlobalNanoseconds();
}

// The MMA warps.
template <Format F, bool kCluster, int kChunks>
__device__ __forceinline__ void RunProductWarps(const Cta& cta, WeightPipeline<kChunks>& weights) {
  if constexpr (kCluster) ClusterBarrier();
  weights.Load();
#pragma unroll 1
  for (int k = cta.a.begin; k < cta.a.end; ++k)
    MultiplyLayers<F, kCluster>(cta, weights, k - cta.a.begin);
  WaitCopies<0>();
}

template <Format F, bool kCluster>
__device__ __forceinline__ void RunEpilogueWarps(const Cta& cta) {
  const Args& a = cta.a;
  WaitForPredecessor();
  ReleaseSuccessor();
  Element element(cta);
  LoadX<Storage<F>>(cta, element);
  if constexpr (kCluster) {
    ClusterBarrier();
  } else {
    Send<kInputReady>();
  }
  const float* cond =
      a.film.cond + static_cast<size_t>(cta.row / a.film.rows_per_env) * a.film.width;
  int timestep = a.x_storage ? a.row_step[cta.row] : a.schedule[a.begin].timestep;
#pragma unroll 1
  for (int k = a.begin; k < a.end; ++k) {
    const FilmRows film = {a.film.step_table + static_cast<size_t>(timestep) * a.film.width, cond};
    LoadStep(cta, k, element);
    if (k + 1 < a.end) timestep = a.schedule[k + 1].timestep;
    RunEpilogues<F, kCluster>(cta, film, k - a.begin);
    EndPass<Storage<F>>(cta, k, element);
    if (k + 1 < a.end) Send<kInputReady>();
  }
}

// grid: (rows, 1, CTAs of a cluster)
template <Format F, bool kCluster, int kChunks>
__global__ void __launch_bounds__(kThreads, 1) RowKernel(const __grid_constant__ Args a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const Cta cta = {a, shared, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.z)};
  // weights are on the way before anything else is
  const int warp = static_cast<int>(threadIdx.x) / 32 - kWarps;  // of the MMA warps
  const int2 range = warp < 0 ? make_int2(0, 0) : a.ranges[cta.rank * kWarps + warp];
  WeightPipeline<kChunks> weights(a.weights + static_cast<size_t>(range.x) * kFragmentBytes,
                                  range.y, SharedAddress(shared) + warp * kChunks * kChunkBytes,
                                  static_cast<int>(threadIdx.x % 32));
  if (kCluster && threadIdx.x == kRoleThreads)
    for (int i = 0; i < 2; ++i) InitBarrier(Output{i}.Barrier(cta), 1);
  SetUp(cta);
  __syncthreads();
  if (warp >= 0) return RunProductWarps<F, kCluster>(cta, weights);
  RunEpilogueWarps<F, kCluster>(cta);
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
    // registers x and z are of the first eight out channels
    if (s.half >= 0)
      out = s.half == 0 ? make_uint4(out.x, 0, out.z, 0) : make_uint4(out.y, 0, out.w, 0);
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
