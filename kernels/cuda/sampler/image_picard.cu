// A thread walks four neighbouring elements of one chain through the window, so that a step's x
// never leaves its registers; a CTA belongs to one chain. How far each step's input moved is summed
// in fixed point: the same bits in whatever order the CTAs run. Bytes moved per window of W: output
// and evaluated read, 2 W ahead written; then W of those read, and evaluated and input written.

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/image_picard.cuh"
#include "kernels/shared/philox.h"
#include "kernels/shared/picard_step.h"

namespace mjp {
namespace {

constexpr int kThreads = 128;
constexpr double kFixedPoint = 0x1p36;
// A warp's sum that is larger, or is not a number, sets the highest bit instead: the others' sums
// do not reach it, so no order of the CTAs makes such a step final.
constexpr float kMostMoved = 0x1p10f;
constexpr unsigned long long kMovedFar = 1ull << 63;

struct Quad {
  float v[4];
};

__device__ __forceinline__ Quad Load(const float* at) {
  const float4 q = *reinterpret_cast<const float4*>(at);
  return {{q.x, q.y, q.z, q.w}};
}
__device__ __forceinline__ void Store(float* at, const Quad& q) {
  *reinterpret_cast<float4*>(at) = make_float4(q.v[0], q.v[1], q.v[2], q.v[3]);
}

// Where the walk over a window stands.
struct Walk {
  const ImagePicardArgs& a;
  int chain, quad;

  __device__ int Elements() const { return a.positions * a.channels; }
  // Index of this thread's elements in row `row` of `rows` of each chain.
  __device__ size_t At(int row, int rows) const {
    return (static_cast<size_t>(chain) * rows + row) * Elements() + quad * 4;
  }
  __device__ Quad Noise(const DenoiseStep& s) const {
    Quad noise = {};
    if (s.sigma > 0)
      NormalQuad(a.keys[chain].seed, a.keys[chain].decision, static_cast<uint32_t>(s.timestep),
                 static_cast<uint32_t>(quad), noise.v);
    return noise;
  }
};

__device__ __forceinline__ void AddMoved(const ImagePicardArgs& a, int chain, int i, float square) {
  square = WarpSum(square);
  if ((threadIdx.x & 31) != 0) return;
  unsigned long long* moved = a.moved + chain * a.window + i;
  if (square <= kMostMoved) {
    atomicAdd(moved, static_cast<unsigned long long>(static_cast<double>(square) * kFixedPoint));
  } else {
    atomicOr(moved, kMovedFar);
  }
}

// grid: (quads of a chain, chains)
__global__ void __launch_bounds__(kThreads) SweepKernel(const ImagePicardArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const Walk walk = {a, static_cast<int>(blockIdx.y),
                     static_cast<int>(blockIdx.x * kThreads + threadIdx.x)};
  const int begin = a.begin[walk.chain], count = min(a.window, a.steps - begin);
  const bool inside = walk.quad * 4 < walk.Elements();
  Quad x = {}, x0 = {};
  for (int i = 0; i < count; ++i) {
    const DenoiseStep s = a.schedule[begin + i];
    float square = 0;
    if (inside) {
      const Quad at = Load(a.evaluated + walk.At(i, a.window));
      const Quad output = Load(a.output + walk.At(i, a.window)), noise = walk.Noise(s);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (i == 0) x.v[e] = at.v[e];
        square += (x.v[e] - at.v[e]) * (x.v[e] - at.v[e]);
        const float exact = Denoise(s, x.v[e], output.v[e], noise.v[e]);
        const float v = VelocityOf(s, at.v[e], output.v[e]);
        x0.v[e] = Clipped(s, SampleOfVelocity(s, x.v[e], v));
        x.v[e] = i == 0 ? exact : StepOfVelocity(s, x.v[e], v, noise.v[e]);
      }
      Store(a.ahead + walk.At(i, 2 * a.window), x);
    }
    if (i > 0) AddMoved(a, walk.chain, i, square);
  }
  // the lookahead, a guess at the steps that the next window may reach: x0 is held
  const int lookahead = min(2 * a.window, a.steps - begin);
  for (int i = count; i < lookahead && inside; ++i) {
    const DenoiseStep s = a.schedule[begin + i];
    const Quad noise = walk.Noise(s);
#pragma unroll
    for (int e = 0; e < 4; ++e) x.v[e] = StepOfSample(s, x.v[e], x0.v[e], noise.v[e]);
    Store(a.ahead + walk.At(i, 2 * a.window), x);
  }
}

// Steps of the chain's window that are final now.
__device__ int Accepted(const ImagePicardArgs& a, int chain) {
  const int begin = a.begin[chain], count = min(a.window, a.steps - begin);
  const double elements = static_cast<double>(a.positions) * a.channels;
  int accepted = min(1, count);
  while (accepted > 0 && accepted < count) {
    const float limit = PicardLimit(a.schedule[begin + accepted], a.tolerance);
    const unsigned long long moved = a.moved[chain * a.window + accepted];
    const double sum = static_cast<double>(moved) / kFixedPoint;
    if ((moved & kMovedFar) || sum > elements * limit * limit) break;
    ++accepted;
  }
  return accepted;
}

template <typename T>
__device__ __forceinline__ void WriteRow(const Walk& walk, int row, const Quad& x) {
  const ImagePicardArgs& a = walk.a;
  Store(a.evaluated + walk.At(row, a.window), x);
  const size_t first = static_cast<size_t>(walk.chain * a.window + row) * a.positions;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int at = walk.quad * 4 + e;
    static_cast<T*>(a.input)[(first + at / a.channels) * a.pitch + at % a.channels] =
        FromFloat<T>(x.v[e]);
  }
}

__device__ void BeginRows(const ImagePicardArgs& a, int chain, int begin) {
  for (int i = threadIdx.x; i < a.window; i += kThreads) {
    a.row_step[chain * a.window + i] = min(begin + i, a.steps - 1);
    a.moved[chain * a.window + i] = 0;
  }
}

// grid: (quads of a chain, chains)
template <typename T>
__global__ void __launch_bounds__(kThreads)
    AdvanceKernel(const ImagePicardArgs a, cudaGraphConditionalHandle loop, bool in_loop) {
  __shared__ int accepted;
  __shared__ bool last;
  WaitForPredecessor();
  ReleaseSuccessor();
  const Walk walk = {a, static_cast<int>(blockIdx.y),
                     static_cast<int>(blockIdx.x * kThreads + threadIdx.x)};
  if (threadIdx.x == 0) accepted = Accepted(a, walk.chain);
  __syncthreads();
  const int begin = a.begin[walk.chain] + accepted;
  if (accepted > 0 && walk.quad * 4 < walk.Elements()) {
    const auto after = [&](int i) { return Load(a.ahead + walk.At(i, 2 * a.window)); };
    if (begin == a.steps) Store(a.x + walk.At(0, 1), after(accepted - 1));
    for (int j = 0; j < a.window && begin + j < a.steps; ++j)
      WriteRow<T>(walk, j, after(accepted - 1 + j));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(a.arrivals, 1) == static_cast<int>(gridDim.x * gridDim.y) - 1;
  }
  __syncthreads();
  if (!last) return;
  int done = 0;
  for (int chain = 0; chain < a.chains; ++chain) {
    const int next = a.begin[chain] + Accepted(a, chain);
    __syncthreads();
    BeginRows(a, chain, next);
    if (threadIdx.x == 0) {
      if (a.begin[chain] < a.steps) ++a.passes[chain];
      a.begin[chain] = next;
    }
    done += next == a.steps;
  }
  if (threadIdx.x != 0) return;
  *a.arrivals = 0;
  if (in_loop && done == a.chains) cudaGraphSetConditional(loop, 0);
}

// grid: (quads of a chain, chains)
template <typename T>
__global__ void __launch_bounds__(kThreads) StartKernel(const ImagePicardArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const Walk walk = {a, static_cast<int>(blockIdx.y),
                     static_cast<int>(blockIdx.x * kThreads + threadIdx.x)};
  if (walk.quad * 4 < walk.Elements()) {
    Quad x;
    NormalQuad(a.keys[walk.chain].seed, a.keys[walk.chain].decision, kStartStep,
               static_cast<uint32_t>(walk.quad), x.v);
    for (int j = 0; j < min(a.window, a.steps); ++j) {
      WriteRow<T>(walk, j, x);
      const DenoiseStep s = a.schedule[j];
      const Quad noise = walk.Noise(s);
#pragma unroll
      for (int e = 0; e < 4; ++e) x.v[e] = StepOfSample(s, x.v[e], 0, noise.v[e]);
    }
  }
  if (blockIdx.x != 0) return;
  BeginRows(a, walk.chain, 0);
  if (threadIdx.x == 0) a.begin[walk.chain] = a.passes[walk.chain] = 0;
}

template <typename T>
void Advance(const ImagePicardArgs& a, const LaunchShape& shape,
             const cudaGraphConditionalHandle* loop, cudaStream_t stream) {
  Launch(SweepKernel, shape, stream, "sweep over a window", a);
  Launch(AdvanceKernel<T>, shape, stream, "advance of a window", a,
         loop ? *loop : cudaGraphConditionalHandle{}, loop != nullptr);
}

LaunchShape ShapeOf(const ImagePicardArgs& a) {
  LaunchShape shape;
  const int quads = a.positions * a.channels / 4;
  shape.grid = dim3((quads + kThreads - 1) / kThreads, a.chains);
  shape.block = dim3(kThreads);
  return shape;
}

}  // namespace

bool ImagePicardSupports(const ImagePicardArgs& a) { return a.positions * a.channels % 4 == 0; }

void LaunchImagePicardStart(Format format, const ImagePicardArgs& a, cudaStream_t stream) {
  const LaunchShape shape = ShapeOf(a);
  const auto kernel = format == Format::kFp16   ? StartKernel<__half>
                      : format == Format::kBf16 ? StartKernel<__nv_bfloat16>
                                                : StartKernel<float>;
  Launch(kernel, shape, stream, "start of a window", a);
}

void LaunchImagePicard(Format format, const ImagePicardArgs& a,
                       const cudaGraphConditionalHandle* loop, cudaStream_t stream) {
  const LaunchShape shape = ShapeOf(a);
  if (format == Format::kFp16) return Advance<__half>(a, shape, loop, stream);
  if (format == Format::kBf16) return Advance<__nv_bfloat16>(a, shape, loop, stream);
  Advance<float>(a, shape, loop, stream);
}

}  // namespace mjp
