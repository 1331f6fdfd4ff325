// The row kernel: a U-Net pass, or a chain of them, of each row in one cluster of CTAs. Bound by
// the latency of a layer inside a CTA, and by the weights, which each CTA reads from L2 in every
// pass.
//
// A layer is: multiply the input, which stands in shared memory whole, with the CTA's slice of the
// out channels; add up what the warps have; norm, Mish, FiLM, residual; store the activations in
// the shared memory of every CTA of the cluster; a barrier. Weights flow through a ring in shared
// memory meanwhile (weight_pipeline.cuh), so the bytes of a pass and its latencies overlap.
// Bytes: all weights / (CTAs of a cluster) from L2 for each CTA and pass.

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/row_kernel/chain.cuh"
#include "kernels/cuda/row_kernel/roles.cuh"

namespace mjp::row_kernel {
namespace {

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
  const int rank = static_cast<int>(blockIdx.z);
  const Cta cta = {a, shared, static_cast<int>(blockIdx.x), rank, rank};
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
  AllowShared(RowKernel<F, kCluster, kChunks>, GpuTraits::Current().shared_bytes,
              "shared memory of the row kernel");
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
