// One block per environment. Everything the sweep reads is staged in shared memory first, and each
// step's v made there in parallel; then a thread per element runs through the window, a chain of a
// few operations per step, and on over the steps that the next window may reach. Which steps are
// final is one bit mask per thread, joined over the block.
// Latency-bound: about 2 x window dependent steps; some kilobytes.

#include <algorithm>

#include "kernels/device_math.cuh"
#include "kernels/launch.cuh"
#include "kernels/picard.cuh"

namespace dp {
namespace {

constexpr int kThreads = 256;
constexpr size_t kMaxSharedBytes = 200 * 1024;
constexpr float kLeastNoise = 0.05f;
// the window is given up where after some passes it moved less than this many steps per pass
constexpr int kTrialPasses = 8, kLeastGain = 3;

__device__ float Clipped(const DenoiseStep& s, float x0) {
  return s.clip > 0 ? fminf(fmaxf(x0, -s.clip), s.clip) : x0;
}

// The step with x0 and eps given.
__device__ float StepFrom(const DenoiseStep& s, float x, float x0, float eps, float noise) {
  const float mean = s.x0_scale * Clipped(s, x0);
  if (s.ddim) return mean + s.eps_scale * eps;
  return mean + s.x_scale * x + (s.sigma > 0 ? s.sigma * noise : 0.0f);
}

// Shared memory of a sweep; steps are counted from the window's first.
struct Stage {
  DenoiseStep* schedule;  // (2 window)
  float* evaluated;       // (window, elements)
  float* v;               // (window, elements)
  float* output;          // (elements) of the first step
  float* noise;           // (2 window, elements)
  float* x;               // (2 window + 1, elements)
};

__host__ __device__ size_t StageBytes(int window, int elements) {
  return sizeof(DenoiseStep) * 2 * window + sizeof(float) * elements * (6 * window + 2);
}

__device__ Stage PlaceStage(uint8_t* shared, int window, int elements) {
  Stage s;
  s.schedule = reinterpret_cast<DenoiseStep*>(shared);
  s.evaluated = reinterpret_cast<float*>(s.schedule + 2 * window);
  s.v = s.evaluated + window * elements;
  s.output = s.v + window * elements;
  s.noise = s.output + elements;
  s.x = s.noise + 2 * window * elements;
  return s;
}

__device__ void LoadStage(const PicardArgs& a, const PicardState& state, int env, int known,
                          const Stage& s) {
  const size_t row0 = static_cast<size_t>(env) * a.window * a.elements;
  for (int k = threadIdx.x; k < known; k += kThreads) s.schedule[k] = a.schedule[state.begin + k];
  __syncthreads();
  for (int i = threadIdx.x; i < state.count * a.elements; i += kThreads) {
    const DenoiseStep& step = s.schedule[i / a.elements];
    const float x = a.evaluated[row0 + i], output = a.output[row0 + i];
    s.evaluated[i] = x;
    s.v[i] = step.sqrt_a * PredictedNoise(step, x, output) -
             step.sqrt_1ma * PredictedSample(step, x, output);
    if (i < a.elements) s.output[i] = output;
    if (a.all_output) {
      const int k = state.begin + i / a.elements;
      a.all_output[(static_cast<size_t>(k) * a.environments + env) * a.elements + i % a.elements] =
          output;
    }
  }
  for (int i = threadIdx.x; a.noise && i < known * a.elements; i += kThreads) {
    const int k = state.begin + i / a.elements;
    s.noise[i] =
        a.noise[(static_cast<size_t>(k) * a.environments + env) * a.elements + i % a.elements];
  }
  __syncthreads();
}

// Runs element i through the window and beyond; returns a bit for each step whose x moved too far.
__device__ uint64_t SweepElement(const PicardArgs& a, const Stage& s, int count, int known, int i) {
  const int n = a.elements;
  uint64_t moved = 0;
  float x = s.evaluated[i];
  s.x[i] = x;
  for (int j = 0; j < count; ++j) {
    const DenoiseStep& step = s.schedule[j];
    const float noise = a.noise ? s.noise[j * n + i] : 0.0f;
    if (j == 0) {  // x is where the network was evaluated
      x = Denoise(step, x, s.output[i], noise);
    } else {
      const float limit = a.tolerance * fmaxf(step.sqrt_1ma, kLeastNoise);
      if (!(fabsf(x - s.evaluated[j * n + i]) <= limit)) moved |= uint64_t{1} << j;
      const float v = s.v[j * n + i];
      x = StepFrom(step, x, step.sqrt_a * x - step.sqrt_1ma * v,
                   step.sqrt_a * v + step.sqrt_1ma * x, noise);
    }
    s.x[(j + 1) * n + i] = x;
  }
  const DenoiseStep& last = s.schedule[count - 1];
  const float x0 = Clipped(
      last, last.sqrt_a * s.x[(count - 1) * n + i] - last.sqrt_1ma * s.v[(count - 1) * n + i]);
  for (int j = count; j < known; ++j) {
    const DenoiseStep& step = s.schedule[j];
    const float eps = step.ddim ? (x - step.sqrt_a * x0) / step.sqrt_1ma : 0.0f;
    x = StepFrom(step, x, x0, eps, a.noise ? s.noise[j * n + i] : 0.0f);
    s.x[(j + 1) * n + i] = x;
  }
  return moved;
}

// The same in every thread.
__device__ uint64_t BlockOr(uint64_t bits, uint32_t* partial) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  uint32_t low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
  for (int mask = 16; mask > 0; mask >>= 1) {
    low |= __shfl_xor_sync(0xffffffffu, low, mask);
    high |= __shfl_xor_sync(0xffffffffu, high, mask);
  }
  if (lane == 0) partial[2 * warp] = low, partial[2 * warp + 1] = high;
  __syncthreads();
  low = high = 0;
  for (int w = 0; w < kThreads / 32; ++w) low |= partial[2 * w], high |= partial[2 * w + 1];
  return (uint64_t{high} << 32) | low;
}

// Hands `count` steps from `begin` on, whose x stand at `x`, to the next pass.
template <typename T>
__device__ void WriteRows(const PicardArgs& a, int env, int begin, int count, const float* x) {
  const size_t row0 = static_cast<size_t>(env) * a.window;
  for (int i = threadIdx.x; i < count * a.elements; i += kThreads)
    a.evaluated[row0 * a.elements + i] = x[i];
  const int padded = a.elements / a.action_dim * a.pitch;
  for (int i = threadIdx.x; i < count * padded; i += kThreads) {
    const int position = i / a.pitch, c = i % a.pitch;
    static_cast<T*>(a.input)[row0 * padded + i] =
        FromFloat<T>(c < a.action_dim ? x[position * a.action_dim + c] : 0.0f);
  }
  for (int j = threadIdx.x; j < count; j += kThreads)
    a.row_step[row0 + j] = a.schedule[begin + j].timestep;
}

__device__ PicardState Advanced(const PicardArgs& a, PicardState s, int accepted, int known_end) {
  s.begin += accepted;
  ++s.passes;
  if (s.passes >= kTrialPasses && s.begin < kLeastGain * s.passes) s.sequential = 1;
  s.count = s.sequential ? min(1, a.steps - s.begin) : min(a.window, known_end - s.begin);
  if (s.begin == a.steps) s.count = 0;
  return s;
}

// grid: (environments)
template <typename T>
__global__ void __launch_bounds__(kThreads)
    PicardSweepKernel(const PicardArgs a, cudaGraphConditionalHandle loop, bool in_loop) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ uint32_t partial[2 * kThreads / 32];
  ReleaseSuccessor();
  WaitForPredecessor();
  const int env = blockIdx.x;
  const PicardState state = a.state[env];
  if (state.begin == a.steps) return;
  const Stage s = PlaceStage(shared, a.window, a.elements);
  // steps after the first whose x becomes known: the window's, and those the next may reach
  const int reach = state.sequential ? state.count : state.count + a.window;
  const int known = min(reach, a.steps - state.begin);
  LoadStage(a, state, env, known, s);
  uint64_t moved = 0;
  for (int i = threadIdx.x; i < a.elements; i += kThreads)
    moved |= SweepElement(a, s, state.count, known, i);
  moved = BlockOr(moved, partial);
  const int accepted = moved ? __ffsll(static_cast<long long>(moved)) - 1 : state.count;
  const PicardState next = Advanced(a, state, accepted, state.begin + known);
  WriteRows<T>(a, env, next.begin, next.count, s.x + accepted * a.elements);
  for (int i = threadIdx.x; a.all_x && i < accepted * a.elements; i += kThreads) {
    const int k = state.begin + i / a.elements;
    a.all_x[(static_cast<size_t>(k) * a.environments + env) * a.elements + i % a.elements] =
        s.x[a.elements + i];
  }
  if (next.begin == a.steps) {
    for (int i = threadIdx.x; i < a.elements; i += kThreads)
      a.x[static_cast<size_t>(env) * a.elements + i] = s.x[accepted * a.elements + i];
  }
  if (threadIdx.x != 0) return;
  a.state[env] = next;
  if (next.begin == a.steps && atomicSub(a.remaining, 1) == 1 && in_loop)
    cudaGraphSetConditional(loop, 0);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) PicardStartKernel(const PicardArgs a) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int env = blockIdx.x;
  WriteRows<T>(a, env, 0, 1, a.x + static_cast<size_t>(env) * a.elements);
  if (threadIdx.x != 0) return;
  a.state[env] = {0, 1, 0, 0};
  if (env == 0) *a.remaining = a.environments;
}

template <typename T>
void Sweep(const PicardArgs& a, const cudaGraphConditionalHandle* loop, cudaStream_t stream) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      PicardSweepKernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxSharedBytes);
  CheckCuda(allowed, "shared memory of the Picard sweep");
  LaunchShape shape;
  shape.grid = dim3(a.environments);
  shape.block = dim3(kThreads);
  shape.shared_bytes = StageBytes(a.window, a.elements);
  Launch(PicardSweepKernel<T>, shape, stream, "Picard sweep", a,
         loop ? *loop : cudaGraphConditionalHandle{}, loop != nullptr);
}

template <typename T>
void Start(const PicardArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3(a.environments);
  shape.block = dim3(kThreads);
  Launch(PicardStartKernel<T>, shape, stream, "Picard start", a);
}

}  // namespace

bool PicardSupports(const PicardArgs& a) {
  return a.window <= kMaxPicardWindow && StageBytes(a.window, a.elements) <= kMaxSharedBytes;
}

void LaunchPicardStart(Format format, const PicardArgs& a, cudaStream_t stream) {
  if (format == Format::kFp16) return Start<__half>(a, stream);
  if (format == Format::kBf16) return Start<__nv_bfloat16>(a, stream);
  Start<float>(a, stream);
}

void LaunchPicardSweep(Format format, const PicardArgs& a, const cudaGraphConditionalHandle* loop,
                       cudaStream_t stream) {
  if (format == Format::kFp16) return Sweep<__half>(a, loop, stream);
  if (format == Format::kBf16) return Sweep<__nv_bfloat16>(a, loop, stream);
  Sweep<float>(a, loop, stream);
}

}  // namespace dp
