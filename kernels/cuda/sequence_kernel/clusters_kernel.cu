// The sequence kernel across clusters: a diffusion transformer's pass, or a chain of them, of one
// sequence in 64 CTAs. Bound by latency: in a block of the network two exchanges within a cluster
// and four through L2.
//
// A cluster has 64 of the width's columns, as a CTA has them in the form of one cluster
// (sequence_kernel.cu). Its eight CTAs share each layer's out channels, and exchange what they made
// over the cluster's shared memory; partial sums and normalised tokens go through L2
// (clusters_exchange.cuh). 32 CTAs have the residual stream of a token each, in registers. Every
// warp multiplies its slice of k, so that tokens go from L2 to registers, and weights too, which
// are asked for while the CTA waits for the tokens. Bytes from L2 in a pass: all weights once, and
// 34 KB of tokens for each CTA and half of a block.

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sequence_kernel/clusters_layers.cuh"
#include "kernels/cuda/sequence_kernel/sequence_kernel.cuh"

namespace mjp::sequence_kernel {
namespace {

// Terms of AdaLN at this thread's two columns: of a branch, with the bias of its last layer, and of
// the norm behind it. They are added where they are used, so that nothing waits for them before.
struct Term {
  float2 of_time, of_condition;
  __device__ __forceinline__ float2 Sum() const {
    return make_float2(of_time.x + of_condition.x, of_time.y + of_condition.y);
  }
};
struct BranchTerms {
  Term gate;
  float2 bias;
};
struct NormTerms {
  Term shift, scale;
};
struct Terms {
  const float *of_time, *of_condition;

  __device__ __forceinline__ Term At(int term) const {
    const int at = term * kWideWidth + static_cast<int>(threadIdx.x) * 2;
    return {LoadNow8(of_time + at), LoadNow8(of_condition + at)};
  }
  __device__ __forceinline__ BranchTerms Branch(int gate, const float* bias) const {
    return {At(gate), LoadNow8(bias + threadIdx.x * 2)};
  }
  __device__ __forceinline__ NormTerms Norm(int shift) const { return {At(shift), At(shift + 1)}; }
};

// The turns of the rotary embedding and the places of the weights, which no pass changes.
template <typename P>
__device__ __forceinline__ void SetUp(const P& p) {
  const int half = p.head / 2;
  auto* turns = reinterpret_cast<float2*>(p.shared + p.at.turns);
  for (int i = threadIdx.x; i < P::kRows * half; i += kThreads) {
    const bool turned = p.a.cosines != nullptr && i < p.a.shape.length * half;
    turns[i] = turned ? make_float2(p.a.cosines[i], p.a.sines[i]) : make_float2(1, 0);
  }
  for (int i = threadIdx.x; i < p.a.shape.layers; i += kThreads) p.Blocks()[i] = p.a.blocks[i];
  if (threadIdx.x == 0) {
    InitBarrier(p.QkvBarrier(), 1);
    InitBarrier(p.HiddenBarrier(), 1);
    FenceBarrierInit();
  }
}

// x of the token here at the start.
template <typename T, typename P>
__device__ __forceinline__ void LoadX(const P& p) {
  const Args& a = p.a;
  const int i = threadIdx.x, actions = a.shape.action_dim;
  if (i >= actions) return;
  p.X()[i] =
      a.x_storage == nullptr
          ? a.x[p.TokenIndex() * actions + i]
          : ToFloat(static_cast<const T*>(a.x_storage)[p.TokenIndex() * a.storage_pitch + i]);
}

// The residual stream at the start of a pass, the first layer's output; and the noise of step `k`.
template <typename T, typename P>
__device__ __forceinline__ float2 BeginPass(const P& p, int k) {
  const Args& a = p.a;
  const int actions = a.shape.action_dim, column = static_cast<int>(threadIdx.x) * 2;
  float2 sum = LoadNow8(a.input_bias + p.token * kWideWidth + column);
  if (a.noise != nullptr && static_cast<int>(threadIdx.x) < actions) {
    const size_t of_step = static_cast<size_t>(k) * a.rows * a.shape.length;
    p.Noise()[threadIdx.x] = a.noise[(of_step + p.TokenIndex()) * actions + threadIdx.x];
  }
  __syncthreads();  // x is there
  const T* weight = static_cast<const T*>(a.input_weight) + column * kMostActions;
  for (int i = 0; i < actions; i += kVector) {
    const auto w0 = *reinterpret_cast<const Pack<T, kVector>*>(weight + i);
    const auto w1 = *reinterpret_cast<const Pack<T, kVector>*>(weight + kMostActions + i);
#pragma unroll
    for (int e = 0; e < kVector; ++e) {
      if (i + e >= actions) break;
      const float x = ToFloat(FromFloat<T>(p.X()[i + e]));
      sum.x = fmaf(ToFloat(w0.v[e]), x, sum.x);
      sum.y = fmaf(ToFloat(w1.v[e]), x, sum.y);
    }
  }
  return sum;
}

// Mean and variance of the token here: of each warp's columns by themselves, as sums of what they
// are off the first one, then joined as Chan et al. (1979) have it.
template <typename P>
__device__ __forceinline__ float2 MeanAndVariance(const P& p, float2 x) {
  constexpr int kEach = kWideWidth / kWarps;
  const float shift = __shfl_sync(~0u, x.x, 0);
  x.x -= shift, x.y -= shift;
  float sum = x.x + x.y, squares = x.x * x.x + x.y * x.y;
#pragma unroll
  for (int other = 16; other > 0; other /= 2) {
    sum += __shfl_xor_sync(~0u, sum, other);
    squares += __shfl_xor_sync(~0u, squares, other);
  }
  sum /= kEach;
  if (p.lane == 0) p.Moments()[p.warp] = make_float2(shift + sum, squares - sum * sum * kEach);
  __syncthreads();
  float2 all = make_float2(0, 0);
#pragma unroll
  for (int i = 0; i < kWarps; ++i) all.x += p.Moments()[i].x;
  all.x /= kWarps;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) {
    const float2 part = p.Moments()[i];
    all.y += part.y + kEach * (part.x - all.x) * (part.x - all.x);
  }
  all.y /= kWideWidth;
  return all;
}

// The norm of the token here, with its terms, to all CTAs.
template <Format F, typename P>
__device__ __forceinline__ void SendNorm(const P& p, Exchange<P>& exchange, float2 x,
                                         const NormTerms& terms) {
  const float2 moments = MeanAndVariance(p, x);
  const float scale = rsqrtf(moments.y + p.a.epsilon);
  const float2 y = make_float2((x.x - moments.x) * scale, (x.y - moments.x) * scale);
  const float2 factor = terms.scale.Sum(), shift = terms.shift.Sum();
  SendToken<Storage<F>>(
      p, exchange,
      make_float2(fmaf(y.x, 1.0f + factor.x, shift.x), fmaf(y.y, 1.0f + factor.y, shift.y)));
}

// x += gate (sums of all clusters + bias)
template <typename P>
__device__ __forceinline__ void AddBranch(const P& p, Exchange<P>& exchange, float2& x,
                                          const BranchTerms& terms) {
  const float2 sum = ReceiveSums(p, exchange), gate = terms.gate.Sum();
  x.x = fmaf(gate.x, sum.x + terms.bias.x, x.x);
  x.y = fmaf(gate.y, sum.y + terms.bias.y, x.y);
}

// The network's last layer for the token here.
template <typename T, typename P>
__device__ __forceinline__ void MakeOutput(const P& p, float2 x) {
  float* token = p.Floats(p.at.token);
  token[threadIdx.x * 2] = ToFloat(FromFloat<T>(x.x));
  token[threadIdx.x * 2 + 1] = ToFloat(FromFloat<T>(x.y));
  __syncthreads();
  for (int action = p.warp; action < p.a.shape.action_dim; action += kWarps) {
    const T* weight = static_cast<const T*>(p.a.output_weight) + action * kWideWidth;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kWideWidth; i += 32 * 4) {
      const float4 w = UnpackFour(*reinterpret_cast<const Pack<T, 4>*>(weight + i + p.lane * 4));
      const float4 v = *reinterpret_cast<const float4*>(token + i + p.lane * 4);
      sum += v.x * w.x + v.y * w.y + v.z * w.z + v.w * w.w;
    }
    sum = WarpSum(sum);
    if (p.lane == 0) p.Output()[action] = sum + p.a.output_bias[action];
  }
  __syncthreads();
}

// After a pass: the network's output, or the sampler's step `k`.
template <typename P>
__device__ __forceinline__ void EndPass(const P& p, int k) {
  const Args& a = p.a;
  const int i = threadIdx.x, actions = a.shape.action_dim;
  const bool writes = k + 1 == a.end;
  if (i < actions) {
    const size_t at = p.TokenIndex() * actions + i;
    const float output = p.Output()[i];
    if (writes) a.output[at] = output;
    if (a.x_storage == nullptr) {
      const float noise = a.noise != nullptr ? p.Noise()[i] : 0.0f;
      const float x = Denoise(a.schedule[k], p.X()[i], output, noise);
      p.X()[i] = x;
      if (writes) a.x[at] = x;
    }
  }
  if (p.row == 0 && p.token == 0 && i == 0 && k - a.begin < a.timestamps.capacity)
    a.timestamps.times[k - a.begin] = GlobalNanoseconds();
}

// What the CTA that has a token reads for the end of a half of a block, on its way before the
// half's second layer: it adds the branch and makes the next norm, but for a pass' last half.
struct HalfTerms {
  BranchTerms branch;
  NormTerms next;
};

template <Format F, typename P>
__device__ __forceinline__ void EndHalf(const P& p, Exchange<P>& exchange, const HalfTerms& terms,
                                        bool last, float2& x) {
  if (p.token >= 0) AddBranch(p, exchange, x, terms.branch);
  exchange.Next();
  if (p.token >= 0 && !last) SendNorm<F>(p, exchange, x, terms.next);
}

// Half `half` of all: of a block first the attention, then the MLP. What both have in common is in
// one loop: a block's code is longer than the caches next to the cores, and fetching it took time.
template <Format F, int kTiles>
__device__ __forceinline__ void RunHalf(const Place<kTiles>& p, const QkvChannels<kTiles>& qkv,
                                        Exchange<Place<kTiles>>& exchange, const Terms& terms,
                                        int half, float2& x) {
  const BlockWeights& w = p.Blocks()[half / 2];
  const int first = half / 2 * kBlockTerms;
  const bool last = half + 1 == 2 * p.a.shape.layers;
  HalfTerms end = {};
  if (half % 2 == 0) {
    MakeQkv<F>(p, w, qkv, exchange);
    if (p.token >= 0) end = {terms.Branch(first + 2, w.out_bias), terms.Norm(first + 3)};
    AddAttention<F>(p, w, exchange);
  } else {
    MakeHidden<F>(p, w, exchange);
    if (p.token >= 0)
      end = {terms.Branch(first + 5, w.mlp2_bias), terms.Norm(last ? first : first + kBlockTerms)};
    AddMlp<F>(p, w, exchange);
  }
  EndHalf<F>(p, exchange, end, last, x);
}

// GPUs of 12.0 have too little shared memory for a width of 512: no code for them.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
constexpr bool kHaveRoom = false;
#else
constexpr bool kHaveRoom = kHaveClusters;
#endif

// grid: (rows, clusters, CTAs of a cluster)
template <Format F, int kTiles>
__global__ void __launch_bounds__(kThreads, 1) ClustersKernel(const __grid_constant__ Args a) {
  if constexpr (!kHaveRoom) return Trap();
  using T = Storage<F>;
  extern __shared__ __align__(128) uint8_t shared[];
  const Place<kTiles> p(a, shared);
  Exchange<Place<kTiles>> exchange(p);
  const QkvChannels<kTiles> qkv(p);
  SetUp(p);
  if (p.token >= 0) LoadX<T>(p);
  const float* of_condition =
      a.terms.cond + static_cast<size_t>(p.row / a.terms.rows_per_env) * a.terms.width;
  ClusterBarrier();  // all have begun
#pragma unroll 1
  for (int k = a.begin; k < a.end; ++k) {
    const int time = a.x_storage != nullptr ? a.row_step[p.row] : a.schedule[k].timestep;
    const Terms terms = {a.terms.step_table + static_cast<size_t>(time) * a.terms.width,
                         of_condition};
    float2 x = make_float2(0, 0);
    if (p.token >= 0) {
      const NormTerms first = terms.Norm(0);
      x = BeginPass<T>(p, k);
      SendNorm<F>(p, exchange, x, first);
    }
#pragma unroll 1
    for (int half = 0; half < 2 * a.shape.layers; ++half)
      RunHalf<F>(p, qkv, exchange, terms, half, x);
    if (p.token >= 0) {
      MakeOutput<T>(p, x);
      EndPass(p, k);
    }
  }
  ClusterBarrier();  // nobody writes any more to what another one has left
}

template <Format F, int kTiles>
void LaunchTiles(const Args& args, cudaStream_t stream) {
  const auto kernel = ClustersKernel<F, kTiles>;
  constexpr int kShared = LayoutOfClusters(kTiles * kTokenTile).end;
  AllowShared(kernel, kShared, "shared memory of the sequence kernel");
  LaunchShape shape;
  shape.grid = dim3(args.rows, kClusters, kClusterCtas);
  shape.block = dim3(kThreads);
  shape.cluster_z = kClusterCtas;
  shape.cooperative = true;
  shape.shared_bytes = kShared;
  Launch(kernel, shape, stream, "sequence kernel across clusters", args);
}

template <Format F>
void LaunchFormat(const Args& args, cudaStream_t stream) {
  if (args.shape.length <= kTokenTile) return LaunchTiles<F, 1>(args, stream);
  LaunchTiles<F, 2>(args, stream);
}

}  // namespace

bool SupportsClusters(Format format, const Shape& s, int rows, const GpuTraits& gpu) {
  // The kernel in code for 12.0 traps, also on a later GPU with room for it.
  constexpr int kFirstWithoutRoom = 120;
  return s.width == kWideWidth && Supports(format, s, gpu) && gpu.cooperative &&
         gpu.code < kFirstWithoutRoom && s.layers <= kMostLayers &&
         LayoutOfClusters(kMostLength).end <= gpu.shared_bytes &&
         rows * kClusters * kClusterCtas <= gpu.MultiprocessorsInClusters(kClusterCtas);
}

size_t MailboxBytes(const Shape& s, int rows) {
  const size_t floats = s.length <= kTokenTile ? Exchange<Place<1>>::SequenceFloats()
                                               : Exchange<Place<2>>::SequenceFloats();
  return rows * floats * sizeof(float);
}

void LaunchSequenceKernelAcrossClusters(Format format, const Args& args, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(args, stream);
  LaunchFormat<Format::kBf16>(args, stream);
}

}  // namespace mjp::sequence_kernel
