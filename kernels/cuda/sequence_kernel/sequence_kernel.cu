// The sequence kernel: a diffusion transformer's pass, or a chain of them, of each sequence in one
// cluster of CTAs. Bound by the weights, which each CTA reads from L2 in every pass, by the reads
// of shared memory that feed the products, and by four barriers of the cluster in a block.
//
// A block is: multiply the tokens, which stand in each CTA's shared memory whole, with the columns
// of the CTA's heads; attend; multiply with what the CTA's columns add to the residual stream; send
// these partial sums to the CTA that has the token; a barrier. That CTA adds them up in the order
// of the ranks, makes the norm and sends it to all; a barrier. The MLP likewise. Weights flow
// through a ring in shared memory meanwhile (weight_pipeline.cuh). The split is that of tensor
// parallelism (Shoeybi et al. 2019), within a multiprocessor cluster.
// Bytes: all weights / (CTAs of a cluster) from L2 for each CTA and pass.

#include <string>

#include "base/error.h"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sequence_kernel/layers.cuh"

namespace mjp::sequence_kernel {
namespace {

// Zeros below the tokens, and the turns of the rotary embedding: what no pass changes.
template <int kCtas, int kTiles>
__device__ __forceinline__ void SetUp(const Cta<kCtas, kTiles>& cta) {
  const Shape& s = cta.a.shape;
  for (int i = threadIdx.x * 16; i < cta.kRows * cta.kInputPitch; i += kThreads * 16)
    *reinterpret_cast<uint4*>(cta.shared + cta.at.input + i) = make_uint4(0, 0, 0, 0);
  const int half = cta.head / 2;
  auto* turns = reinterpret_cast<float2*>(cta.shared + cta.at.turns);
  for (int i = threadIdx.x; i < cta.kRows * half; i += kThreads) {
    const bool turned = cta.a.cosines != nullptr && i < s.length * half;
    turns[i] = turned ? make_float2(cta.a.cosines[i], cta.a.sines[i]) : make_float2(1, 0);
  }
}

// x of this CTA's tokens at the start.
template <typename T, int kCtas, int kTiles>
__device__ __forceinline__ void LoadX(const Cta<kCtas, kTiles>& cta) {
  const Args& a = cta.a;
  const int actions = a.shape.action_dim;
  const size_t token0 = static_cast<size_t>(cta.row) * a.shape.length + cta.first;
  for (int i = threadIdx.x; i < cta.ActionCount(); i += kThreads) {
    if (a.x_storage != nullptr) {
      const size_t at = (token0 + i / actions) * a.storage_pitch + i % actions;
      cta.X()[i] = ToFloat(static_cast<const T*>(a.x_storage)[at]);
    } else {
      cta.X()[i] = a.x[token0 * actions + i];
    }
  }
}

// The noise of step `k`, and the residual stream at the start of the pass: the first layer's.
template <typename T, int kCtas, int kTiles>
__device__ __forceinline__ void BeginPass(const Cta<kCtas, kTiles>& cta, int k) {
  const Args& a = cta.a;
  const int actions = a.shape.action_dim;
  if (a.noise != nullptr) {
    const size_t token0 = (static_cast<size_t>(k) * a.rows + cta.row) * a.shape.length + cta.first;
    for (int i = threadIdx.x; i < cta.ActionCount(); i += kThreads)
      cta.Noise()[i] = a.noise[token0 * actions + i];
  }
  constexpr int kVector = 8;  // weights of a load
  constexpr int kTokens = 4;  // at once, so that their loads are
#pragma unroll
  for (int first = 0; first < cta.kWidth; first += kThreads) {
    const int c = first + threadIdx.x;
    if (c >= cta.kWidth) break;
    const T* weight = static_cast<const T*>(a.input_weight) + c * kMostActions;
    for (int t0 = 0; t0 < cta.count; t0 += kTokens) {
      float sum[kTokens];
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        const int token = min(cta.first + t0 + t, a.shape.length - 1);
        sum[t] = LoadNow(a.input_bias + static_cast<size_t>(token) * cta.kWidth + c);
      }
      for (int i = 0; i < actions; i += kVector) {
        const auto w = *reinterpret_cast<const Pack<T, kVector>*>(weight + i);
#pragma unroll
        for (int t = 0; t < kTokens; ++t) {
          if (t0 + t >= cta.count) break;
#pragma unroll
          for (int e = 0; e < kVector; ++e) {
            if (i + e >= actions) break;
            const float x = ToFloat(FromFloat<T>(cta.X()[(t0 + t) * actions + i + e]));
            sum[t] = fmaf(ToFloat(w.v[e]), x, sum[t]);
          }
        }
      }
#pragma unroll
      for (int t = 0; t < kTokens; ++t)
        if (t0 + t < cta.count) cta.Floats(cta.at.x)[(t0 + t) * cta.kWidth + c] = sum[t];
    }
  }
}

// The last layer of this CTA's tokens.
template <Format F, int kCtas, int kTiles>
__device__ __forceinline__ void MakeOutput(const Cta<kCtas, kTiles>& cta) {
  using T = Storage<F>;
  using Values = TokenValues<kCtas>;
  const int actions = cta.a.shape.action_dim;
  for (int t = threadIdx.x / 32; t < cta.count; t += kWarps) {
    const Values token = LoadToken<true>(cta, t);
#pragma unroll 2
    for (int action = 0; action < actions; ++action) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < Values::kFours; ++i) {
        if (!Values::Here(i)) continue;
        const float4 w = UnpackFour(*reinterpret_cast<const Pack<T, 4>*>(
            static_cast<const T*>(cta.a.output_weight) + action * cta.kWidth + Values::Column(i)));
        const float4 x = UnpackFour(PackFour<T>(token.v[i]));
        sum += x.x * w.x + x.y * w.y + x.z * w.z + x.w * w.w;
      }
      sum = WarpSum(sum);
      if ((threadIdx.x & 31) == 0) cta.Output()[t * actions + action] = sum;
    }
  }
}

// After a pass: the network's output, or the sampler's step `k`.
template <int kCtas, int kTiles>
__device__ __forceinline__ void EndPass(const Cta<kCtas, kTiles>& cta, int k) {
  const Args& a = cta.a;
  const int actions = a.shape.action_dim;
  const bool writes = k + 1 == a.end;
  const size_t first = (static_cast<size_t>(cta.row) * a.shape.length + cta.first) * actions;
  for (int i = threadIdx.x; i < cta.ActionCount(); i += kThreads) {
    const float output = cta.Output()[i] + a.output_bias[i % actions];
    if (writes) a.output[first + i] = output;
    if (a.x_storage != nullptr) continue;
    const float noise = a.noise != nullptr ? cta.Noise()[i] : 0.0f;
    const float x = Denoise(a.schedule[k], cta.X()[i], output, noise);
    cta.X()[i] = x;
    if (writes) a.x[first + i] = x;
  }
  const bool takes_time = blockIdx.x == 0 && cta.rank == 0 && threadIdx.x == 0;
  if (takes_time && k - a.begin < a.timestamps.capacity)
    a.timestamps.times[k - a.begin] = GlobalNanoseconds();
}

// One block; its first norm stands in every CTA, and at the end the next one's does.
template <Format F, int kCtas, int kTiles>
__device__ __forceinline__ void RunBlock(const Cta<kCtas, kTiles>& cta, const TermRows& terms,
                                         int block, WeightPipeline& weights) {
  constexpr int kWidth = Cta<kCtas, kTiles>::kWidth;
  const int first = block * kBlockTerms;
  const bool last = block + 1 == cta.a.shape.layers;
  float* const next = cta.Floats(cta.at.terms);
  {
    const NextTerms<kCtas> read(terms, first + 2, first + 3, cta.Biases(block));
    MakeQkv<F>(cta, block, weights);
    read.Store(next);
  }
  __syncthreads();
  Attend<F>(cta);
  __syncthreads();
  SendSums<F, 1>(cta, cta.at.context, kContextPitch, weights);
  ClusterBarrier();
  NormTokens<F, true>(cta);
  {
    const NextTerms<kCtas> read(terms, first + 5, last ? first : first + kBlockTerms,
                                cta.Biases(block) + kWidth);
    MakeHidden<F>(cta, block, weights);
    read.Store(next);
  }
  __syncthreads();
  SendSums<F, kHiddenColumns / kGroupK>(cta, cta.at.hidden, kHiddenPitch, weights);
  ClusterBarrier();
  if (!last) NormTokens<F, true>(cta);
}

// grid: (rows, 1, CTAs of a cluster)
template <Format F, int kCtas, int kTiles>
__global__ void __launch_bounds__(kThreads, 1) SequenceKernel(const __grid_constant__ Args a) {
  if constexpr (!kHaveClusters) return Trap();
  using T = Storage<F>;
  extern __shared__ __align__(128) uint8_t shared[];
  const Cta<kCtas, kTiles> cta(a, shared);
  const int warp = threadIdx.x / 32, groups = a.shape.layers * BlockGroups(kCtas);
  WeightPipeline weights(static_cast<const uint8_t*>(a.weights) +
                             static_cast<size_t>(cta.rank * kWarps + warp) * groups * kGroupBytes,
                         groups,
                         SharedAddress(shared + cta.at.ring) + warp * WeightPipeline::kRingBytes,
                         threadIdx.x & 31);
  SetUp(cta);
  ReleaseSuccessor();
  WaitForPredecessor();
  LoadX<T>(cta);
  weights.Start();
  const float* of_condition =
      a.terms.cond + static_cast<size_t>(cta.row / a.terms.rows_per_env) * a.terms.width;
  int time = a.x_storage != nullptr ? a.row_step[cta.row] : a.schedule[a.begin].timestep;
  ClusterBarrier();  // all have begun, and have set their memory up
#pragma unroll 1
  for (int k = a.begin; k < a.end; ++k) {
    const TermRows terms = {a.terms.step_table + static_cast<size_t>(time) * a.terms.width,
                            of_condition};
    const NextTerms<kCtas> read(terms, 0, 0, cta.Biases(0));
    if (k + 1 < a.end) time = a.schedule[k + 1].timestep;
    BeginPass<T>(cta, k);
    read.Store(cta.Floats(cta.at.terms));
    __syncthreads();
    NormTokens<F, false>(cta);
#pragma unroll 1
    for (int block = 0; block < a.shape.layers; ++block) RunBlock<F>(cta, terms, block, weights);
    MakeOutput<F>(cta);
    __syncthreads();
    EndPass(cta, k);
    __syncthreads();
  }
  WaitCopies<0>();
}

template <Format F, int kCtas, int kTiles>
void LaunchForm(const Args& args, cudaStream_t stream) {
  const auto kernel = SequenceKernel<F, kCtas, kTiles>;
  AllowShared(kernel, GpuTraits::Current().shared_bytes, "shared memory of the sequence kernel");
  LaunchShape shape;
  shape.grid = dim3(args.rows, 1, kCtas);
  shape.block = dim3(kThreads);
  shape.cluster_z = kCtas;
  shape.shared_bytes = LayoutOf(args.shape).end;
  Launch(kernel, shape, stream, "sequence kernel", args);
}

template <Format F, int kCtas>
void LaunchWidth(const Args& args, cudaStream_t stream) {
  if (args.shape.length <= kTokenTile) return LaunchForm<F, kCtas, 1>(args, stream);
  LaunchForm<F, kCtas, 2>(args, stream);
}

template <Format F>
void LaunchFormat(const Args& args, cudaStream_t stream) {
  switch (args.shape.Ctas()) {
    case 1:
      return LaunchWidth<F, 1>(args, stream);
    case 2:
      return LaunchWidth<F, 2>(args, stream);
    case 4:
      return LaunchWidth<F, 4>(args, stream);
    default:
      return LaunchWidth<F, 8>(args, stream);
  }
}

}  // namespace

bool Supports(Format format, const Shape& s, const GpuTraits& gpu) {
  const bool wide = s.width == 64 || s.width == 128 || s.width == 256 || s.width == 512;
  if (FormatBytes(format) != 2 || !wide || s.heads < 1 || s.width % s.heads != 0) return false;
  const int head = s.HeadSize();
  return (head == 16 || head == 32 || head == 64) && s.length <= kMostLength &&
         s.action_dim <= kMostActions && gpu.ClusterBlocks() >= 8 &&
         LayoutOf(s).end <= gpu.shared_bytes;
}

void LaunchSequenceKernel(Format format, const Args& args, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(args, stream);
  if (format == Format::kBf16) return LaunchFormat<Format::kBf16>(args, stream);
  throw Unsupported("the sequence kernel has fp16 and bf16 forms alone");
}

}  // namespace mjp::sequence_kernel
