#ifndef KERNELS_CUDA_SAMPLER_PICARD_SWEEP_CUH_
#define KERNELS_CUDA_SAMPLER_PICARD_SWEEP_CUH_

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/sampler/picard.cuh"
#include "kernels/shared/picard_step.h"

// The sweep of one environment by one CTA, as policy/parallel_sampler.cc does it: everything it
// reads is brought into shared memory; then one warp runs through the window, a chain of a few
// operations and one sum over the warp per step, and on over the lookahead, the steps that the next
// window may reach.

namespace mjp {

inline constexpr int kPicardThreads = 256;

// Of a CTA's first threads, which sweep; it may have others that do something else.
__device__ __forceinline__ void SyncPicardThreads() {
  asm volatile("bar.sync 0, %0;" ::"n"(kPicardThreads) : "memory");
}

// Shared memory of a sweep; steps count from the window's first.
struct PicardScratch {
  DenoiseStep* schedule;  // (2 window)
  float *at, *v;          // (window, elements): where the network was evaluated, and v there
  float *dx, *dv;         // likewise: how those differ from the evaluation before; 0 without one
  float* output;          // (elements) of the first step
  float* x0;              // (elements) of the step taken last
  float* limit;           // (window): how far x may have moved
  float* x;         // (2 window + 1, elements); the noise of step j until j + 1 takes its place
  float* previous;  // (window, 2, elements), outlives the sweep: x and v of the evaluation of
                    // step k, at k % window

  __device__ float* Noise(int elements) const { return x + elements; }
};

__host__ __device__ inline size_t PicardScratchBytes(int window, int elements) {
  return sizeof(DenoiseStep) * 2 * window + sizeof(float) * (window + elements * (6 * window + 3));
}
// Values of one environment that outlive its sweeps.
__host__ __device__ inline int PicardPreviousSize(int window, int elements) {
  return 2 * window * elements;
}

__device__ inline PicardScratch PlacePicardScratch(uint8_t* shared, int window, int elements,
                                                   float* previous) {
  PicardScratch s;
  const int size = window * elements;
  s.schedule = reinterpret_cast<DenoiseStep*>(shared);
  s.at = reinterpret_cast<float*>(s.schedule + 2 * window);
  s.v = s.at + size;
  s.dx = s.v + size;
  s.dv = s.dx + size;
  s.output = s.dv + size;
  s.x0 = s.output + elements;
  s.limit = s.x0 + elements;
  s.x = s.limit + window;
  s.previous = previous;
  return s;
}

// Steps that a sweep may take: the window's, and the lookahead.
__device__ inline int PicardLookahead(const PicardSweepArgs& a, const PicardState& state) {
  const int lookahead = state.sequential ? state.count : state.count + a.window;
  return min(lookahead, a.steps - state.begin);
}

// Issues the copies of what does not depend on the network, the constants and noise of `lookahead`
// steps; they have arrived after WaitCopies<0>() and a barrier.
__device__ inline void PrefetchPicardNoise(const PicardSweepArgs& a, const PicardState& state,
                                           int env, int lookahead, const PicardScratch& s) {
  constexpr int kWords = sizeof(DenoiseStep) / 4;
  const uint32_t* constants = reinterpret_cast<const uint32_t*>(a.schedule + state.begin);
  for (int i = threadIdx.x; i < lookahead * kWords; i += kPicardThreads)
    CopyAsync4(SharedAddress(s.schedule) + i * 4, constants + i, true);
  const int n = a.elements, lane = threadIdx.x & 31;
  for (int j = threadIdx.x >> 5; j < lookahead; j += kPicardThreads / 32) {
    const size_t from = (static_cast<size_t>(state.begin + j) * a.environments + env) * n;
    for (int e = lane; e < n; e += 32)
      CopyAsync4(SharedAddress(s.Noise(n) + j * n + e), a.noise ? a.noise + from + e : a.x,
                 a.noise != nullptr);
  }
  CommitCopies();
}

// Records element `e` of the window's step j, whose constants are `step`: where the network was
// evaluated, its output, and how both differ from the evaluation before.
__device__ inline void RecordOutput(const PicardSweepArgs& a, const PicardState& state, int env,
                                    int j, int e, const DenoiseStep& step, float x, float output,
                                    const PicardScratch& s) {
  const int n = a.elements, i = j * n + e, k = state.begin + j;
  const float v = VelocityOf(step, x, output);
  float* previous = s.previous + (k % a.window) * 2 * n + e;
  const bool again = k < state.evaluated;
  s.dx[i] = again ? x - previous[0] : 0.0f;
  s.dv[i] = again ? v - previous[n] : 0.0f;
  previous[0] = s.at[i] = x;
  previous[n] = s.v[i] = v;
  if (j == 0) s.output[e] = output, s.x[e] = x;
  if (a.all_output) a.all_output[(static_cast<size_t>(k) * a.environments + env) * n + e] = output;
}

// By one warp: how many times farther x of step j may have moved than that of a late step; measured
// by the network's outputs at the neighbouring step.
__device__ inline float ToleranceScaleOf(const PicardSweepArgs& a, const PicardScratch& s, int j,
                                         int neighbour) {
  const int n = a.elements;
  const DenoiseStep step = s.schedule[j], other = s.schedule[neighbour];
  const float scale = FastReciprocal(step.sqrt_a), other_scale = FastReciprocal(other.sqrt_a);
  float x_square = 0, x0_square = 0;
  for (int e = threadIdx.x & 31; e < n; e += 32) {
    const int i = j * n + e, k = neighbour * n + e;
    const float d = s.at[i] * scale - s.at[k] * other_scale;
    const float d0 = Clipped(step, SampleOfVelocity(step, s.at[i], s.v[i])) -
                     Clipped(other, SampleOfVelocity(other, s.at[k], s.v[k]));
    x_square += d * d, x0_square += d0 * d0;
  }
  return PicardToleranceScale(step, WarpSum(x_square), WarpSum(x0_square));
}

// How far x of the steps may have moved, a warp each.
__device__ inline void SetLimits(const PicardSweepArgs& a, const PicardScratch& s, int count) {
  for (int j = threadIdx.x >> 5; j < count; j += kPicardThreads / 32) {
    float limit = PicardLimit(s.schedule[j], a.tolerance);
    if (PicardScalesTolerance(s.schedule[j]) && count > 1)
      limit *= ToleranceScaleOf(a, s, j, j + 1 < count ? j + 1 : j - 1);
    if ((threadIdx.x & 31) == 0) s.limit[j] = limit;
  }
}

// By one warp: the secant step, how far x of step j moved along dx since the evaluation; v is taken
// to have moved as far along dv, at most by all of it. Clears `converged` where x moved beyond its
// limit.
__device__ inline float SecantStep(const PicardSweepArgs& a, const PicardScratch& s, int j,
                                   bool& converged) {
  const float limit = s.limit[j];
  float dot = 0, square = 0;
  for (int i = j * a.elements + (threadIdx.x & 31); i < (j + 1) * a.elements; i += 32) {
    const float gone = s.x[i] - s.at[i], dx = s.dx[i];
    converged = converged && fabsf(gone) <= limit;
    dot += gone * dx;
    square += dx * dx;
  }
  dot = WarpSum(dot), square = WarpSum(square);
  return square > 0 ? fminf(fmaxf(__fdividef(dot, square), -1.0f), 1.0f) : 0.0f;
}

// By one warp: takes the steps of the window; the same in every lane: those that are final now.
__device__ inline int SweepSteps(const PicardSweepArgs& a, const PicardScratch& s, int count) {
  const int n = a.elements;
  bool converged = true;
  int accepted = 0;  // as this lane sees it
  for (int j = 0; j < count; ++j) {
    const DenoiseStep step = s.schedule[j];
    const float secant = j == 0 ? 0.0f : SecantStep(a, s, j, converged);
    accepted += converged;
    for (int e = threadIdx.x & 31; e < n; e += 32) {
      const int i = j * n + e;
      const float x = s.x[i], noise = s.x[i + n], v = s.v[i] + secant * s.dv[i];
      s.x0[e] = Clipped(step, SampleOfVelocity(step, x, v));
      // at the first step x is where the network was evaluated
      s.x[i + n] =
          j == 0 ? Denoise(step, x, s.output[e], noise) : StepOfVelocity(step, x, v, noise);
    }
  }
  return WarpMin(accepted);
}

// By one warp: takes the steps [begin, end) with x0 held.
__device__ inline void ExtendSteps(const PicardSweepArgs& a, const PicardScratch& s, int begin,
                                   int end) {
  const int n = a.elements;
  for (int e = threadIdx.x & 31; e < n; e += 32) {
    const float x0 = s.x0[e];
    float x = s.x[begin * n + e];
    for (int j = begin; j < end; ++j) {
      float* next = s.x + (j + 1) * n + e;
      *next = x = StepOfSample(s.schedule[j], x, x0, *next);
    }
  }
}

// Guesses the first window from its first x, with x0 in the middle of the range: the first steps
// depend on it little.
__device__ inline PicardState BeginWindow(const PicardSweepArgs& a, const PicardScratch& s,
                                          int env) {
  const PicardState first = {0, min(a.window, a.steps), 0, 0, 0};
  PrefetchPicardNoise(a, first, env, first.count, s);
  WaitCopies<0>();
  for (int e = threadIdx.x; e < a.elements; e += kPicardThreads) s.x0[e] = 0.0f;
  SyncPicardThreads();
  if (threadIdx.x < 32) ExtendSteps(a, s, 0, first.count - 1);
  SyncPicardThreads();
  return first;
}

__device__ inline PicardState AdvancedState(const PicardSweepArgs& a, PicardState s, int accepted) {
  s.evaluated = s.begin + s.count;
  s.begin += accepted;
  ++s.passes;
  if (PicardGainsTooLittle(s.begin, s.passes)) s.sequential = 1;
  s.count = min(s.sequential ? 1 : a.window, a.steps - s.begin);
  return s;
}

// Sweeps what was recorded, with the prefetched noise; returns, in every thread, the steps that
// became final. `shared` is one int of shared memory.
__device__ inline int SweepWindow(const PicardSweepArgs& a, const PicardScratch& s,
                                  const PicardState& state, int env, int* shared) {
  WaitCopies<0>();
  SyncPicardThreads();
  SetLimits(a, s, state.count);
  SyncPicardThreads();
  if (threadIdx.x < 32) {
    const int steps = SweepSteps(a, s, state.count);
    if (!state.sequential)
      ExtendSteps(a, s, state.count, min(steps + a.window, a.steps - state.begin) - 1);
    if (threadIdx.x == 0) *shared = steps;
  }
  SyncPicardThreads();
  const int accepted = *shared;
  for (int i = threadIdx.x; a.all_x && i < accepted * a.elements; i += kPicardThreads) {
    const int k = state.begin + i / a.elements;
    a.all_x[(static_cast<size_t>(k) * a.environments + env) * a.elements + i % a.elements] =
        s.x[a.elements + i];
  }
  return accepted;
}

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_PICARD_SWEEP_CUH_
