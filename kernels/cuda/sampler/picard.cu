// One CTA per environment (kernels/cuda/sampler/picard_sweep.cuh).
// Latency-bound: up to 2 x window dependent steps; some kilobytes.

#include <algorithm>

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/picard.cuh"
#include "kernels/cuda/sampler/picard_sweep.cuh"

namespace mjp {
namespace {

// Of the kernels' own variables in shared memory, at most.
constexpr int kStaticBytes = 1024;

// Writes the next pass' rows: `count` steps from `begin` on, whose x are at `x`.
template <typename T>
__device__ void WriteRows(const PicardArgs& a, int env, int begin, int count, const float* x) {
  const size_t row0 = static_cast<size_t>(env) * a.window;
  for (int i = threadIdx.x; i < count * a.elements; i += kPicardThreads)
    a.evaluated[row0 * a.elements + i] = x[i];
  const int padded = a.elements / a.action_dim * a.pitch;
  for (int i = threadIdx.x; i < count * padded; i += kPicardThreads) {
    const int position = i / a.pitch, c = i % a.pitch;
    static_cast<T*>(a.input)[row0 * padded + i] =
        FromFloat<T>(c < a.action_dim ? x[position * a.action_dim + c] : 0.0f);
  }
  for (int j = threadIdx.x; j < count; j += kPicardThreads)
    a.row_step[row0 + j] = a.schedule[begin + j].timestep;
}

__device__ PicardScratch ScratchOf(const PicardArgs& a, int env, uint8_t* shared) {
  return PlacePicardScratch(
      shared, a.window, a.elements,
      a.previous + static_cast<size_t>(env) * PicardPreviousSize(a.window, a.elements));
}

// grid: (environments)
template <typename T>
__global__ void __launch_bounds__(kPicardThreads)
    PicardSweepKernel(const PicardArgs a, cudaGraphConditionalHandle loop, bool in_loop) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ int final_steps;
  ReleaseSuccessor();
  WaitForPredecessor();
  const int env = blockIdx.x;
  const PicardState state = a.state[env];
  if (state.begin == a.steps || (state.sequential && a.window > 1)) return;
  const PicardScratch s = ScratchOf(a, env, shared);
  PrefetchPicardNoise(a, state, env, PicardLookahead(a, state), s);
  const size_t row0 = static_cast<size_t>(env) * a.window * a.elements;
  for (int i = threadIdx.x; i < state.count * a.elements; i += kPicardThreads) {
    const int j = i / a.elements;
    RecordOutput(a, state, env, j, i - j * a.elements, a.schedule[state.begin + j],
                 a.evaluated[row0 + i], a.output[row0 + i], s);
  }
  const int accepted = SweepWindow(a, s, state, env, &final_steps);
  const PicardState next = AdvancedState(a, state, accepted);
  WriteRows<T>(a, env, next.begin, next.count, s.x + accepted * a.elements);
  const bool finished = next.begin == a.steps || (next.sequential && a.window > 1);
  if (finished) {
    for (int i = threadIdx.x; i < a.elements; i += kPicardThreads)
      a.x[static_cast<size_t>(env) * a.elements + i] = s.x[accepted * a.elements + i];
  }
  if (threadIdx.x != 0) return;
  a.state[env] = next;
  if (finished && atomicSub(a.remaining, 1) == 1 && in_loop) cudaGraphSetConditional(loop, 0);
}

// grid: (environments)
template <typename T>
__global__ void __launch_bounds__(kPicardThreads) PicardStartKernel(const PicardArgs a) {
  extern __shared__ __align__(16) uint8_t shared[];
  ReleaseSuccessor();
  WaitForPredecessor();
  const int env = blockIdx.x;
  const PicardScratch s = ScratchOf(a, env, shared);
  for (int i = threadIdx.x; i < a.elements; i += kPicardThreads)
    s.x[i] = a.x[static_cast<size_t>(env) * a.elements + i];
  const PicardState first = BeginWindow(a, s, env);
  WriteRows<T>(a, env, 0, first.count, s.x);
  if (threadIdx.x != 0) return;
  a.state[env] = first;
  if (env == 0) *a.remaining = a.environments;
}

// grid: (environments)
template <typename T>
__global__ void __launch_bounds__(kPicardThreads)
    PicardFallbackKernel(const PicardArgs a, cudaGraphConditionalHandle loop, bool in_loop) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int env = blockIdx.x, begin = a.state[env].begin;
  if (begin < a.steps) WriteRows<T>(a, env, begin, 1, a.x + static_cast<size_t>(env) * a.elements);
  if (env != 0 || threadIdx.x != 0) return;
  int unfinished = 0;
  for (int i = 0; i < a.environments; ++i) unfinished += a.state[i].begin < a.steps;
  *a.remaining = unfinished;
  if (in_loop && unfinished > 0) cudaGraphSetConditional(loop, 1);
}

LaunchShape ShapeOf(const PicardArgs& a) {
  LaunchShape shape;
  shape.grid = dim3(a.environments);
  shape.block = dim3(kPicardThreads);
  shape.shared_bytes = PicardScratchBytes(a.window, a.elements);
  return shape;
}

template <typename Kernel>
void Allow(Kernel kernel) {
  AllowShared(kernel, GpuTraits::Current().shared_bytes - kStaticBytes,
              "shared memory of the Picard sweep");
}

template <typename T>
void Sweep(const PicardArgs& a, const cudaGraphConditionalHandle* loop, cudaStream_t stream) {
  Allow(PicardSweepKernel<T>);
  Launch(PicardSweepKernel<T>, ShapeOf(a), stream, "Picard sweep", a,
         loop ? *loop : cudaGraphConditionalHandle{}, loop != nullptr);
}

template <typename T>
void Start(const PicardArgs& a, cudaStream_t stream) {
  Allow(PicardStartKernel<T>);
  Launch(PicardStartKernel<T>, ShapeOf(a), stream, "Picard start", a);
}

template <typename T>
void Fallback(const PicardArgs& a, const cudaGraphConditionalHandle* loop, cudaStream_t stream) {
  Allow(PicardFallbackKernel<T>);
  Launch(PicardFallbackKernel<T>, ShapeOf(a), stream, "Picard fallback", a,
         loop ? *loop : cudaGraphConditionalHandle{}, loop != nullptr);
}

}  // namespace

bool PicardSupports(const PicardSweepArgs& a, const GpuTraits& gpu) {
  return a.window <= kMaxPicardWindow && PicardScratchBytes(a.window, a.elements) + kStaticBytes <=
                                             static_cast<size_t>(gpu.shared_bytes);
}

void LaunchPicardStart(Format format, const PicardArgs& a, cudaStream_t stream) {
  if (format == Format::kFp16) return Start<__half>(a, stream);
  if (format == Format::kBf16) return Start<__nv_bfloat16>(a, stream);
  Start<float>(a, stream);
}

void LaunchPicardFallback(Format format, const PicardArgs& a,
                          const cudaGraphConditionalHandle* loop, cudaStream_t stream) {
  if (format == Format::kFp16) return Fallback<__half>(a, loop, stream);
  if (format == Format::kBf16) return Fallback<__nv_bfloat16>(a, loop, stream);
  Fallback<float>(a, loop, stream);
}

void LaunchPicardSweep(Format format, const PicardArgs& a, const cudaGraphConditionalHandle* loop,
                       cudaStream_t stream) {
  if (format == Format::kFp16) return Sweep<__half>(a, loop, stream);
  if (format == Format::kBf16) return Sweep<__nv_bfloat16>(a, loop, stream);
  Sweep<float>(a, loop, stream);
}

}  // namespace mjp
