#ifndef KERNELS_PICARD_SWEEP_CUH_
#define KERNELS_PICARD_SWEEP_CUH_

#include "kernels/picard.cuh"

// The sweep of one environment by one block: everything it reads is staged in shared memory; then a
// thread per element runs through the window, a chain of a few operations per step, and on over the
// steps that the next window may reach. Which steps are final is one bit mask per thread, joined
// over the block.

namespace dp {

inline constexpr int kPicardThreads = 256;
inline constexpr float kPicardLeastNoise = 0.05f;
// the window is given up where after some passes it moved less than this many steps per pass
inline constexpr int kPicardTrialPasses = 8, kPicardLeastGain = 3;

__device__ inline float Clipped(const DenoiseStep& s, float x0) {
  return s.clip > 0 ? fminf(fmaxf(x0, -s.clip), s.clip) : x0;
}

// The step with x0 and eps given.
__device__ inline float StepFrom(const DenoiseStep& s, float x, float x0, float eps, float noise) {
  const float mean = s.x0_scale * Clipped(s, x0);
  if (s.ddim) return mean + s.eps_scale * eps;
  return mean + s.x_scale * x + (s.sigma > 0 ? s.sigma * noise : 0.0f);
}

// Shared memory of a sweep; steps are counted from the window's first.
struct PicardStage {
  DenoiseStep* schedule;  // (2 window)
  float* evaluated;       // (window, elements)
  float* v;               // (window, elements)
  float* output;          // (elements) of the first step
  float* noise;           // (2 window, elements)
  float* x;               // (2 window + 1, elements)
};

__host__ __device__ inline size_t PicardStageBytes(int window, int elements) {
  return sizeof(DenoiseStep) * 2 * window + sizeof(float) * elements * (6 * window + 2);
}

__device__ inline PicardStage PlaceStage(uint8_t* shared, int window, int elements) {
  PicardStage s;
  s.schedule = reinterpret_cast<DenoiseStep*>(shared);
  s.evaluated = reinterpret_cast<float*>(s.schedule + 2 * window);
  s.v = s.evaluated + window * elements;
  s.output = s.v + window * elements;
  s.noise = s.output + elements;
  s.x = s.noise + 2 * window * elements;
  return s;
}

// Steps after the first whose x becomes known: the window's, and those the next may reach.
__device__ inline int PicardKnown(const PicardArgs& a, const PicardState& state) {
  const int reach = state.sequential ? state.count : state.count + a.window;
  return min(reach, a.steps - state.begin);
}

// Stages what does not depend on the network: the steps' constants and noise.
__device__ inline void LoadPicardNoise(const PicardArgs& a, const PicardState& state, int env,
                                       int known, const PicardStage& s) {
  for (int k = threadIdx.x; k < known; k += kPicardThreads)
    s.schedule[k] = a.schedule[state.begin + k];
  for (int i = threadIdx.x; a.noise && i < known * a.elements; i += kPicardThreads) {
    const int k = state.begin + i / a.elements;
    s.noise[i] =
        a.noise[(static_cast<size_t>(k) * a.environments + env) * a.elements + i % a.elements];
  }
  __syncthreads();
}

// Stages element `i` of the window: where the network was evaluated and what it said.
__device__ inline void StageOutput(const PicardArgs& a, const PicardState& state, int env, int i,
                                   float x, float output, const PicardStage& s) {
  const DenoiseStep& step = s.schedule[i / a.elements];
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

// Runs element i through the window and beyond; returns a bit for each step whose x moved too far.
__device__ inline uint64_t SweepElement(const PicardArgs& a, const PicardStage& s, int count,
                                        int known, int i) {
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
      const float limit = a.tolerance * fmaxf(step.sqrt_1ma, kPicardLeastNoise);
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
__device__ inline uint64_t BlockOr(uint64_t bits, uint32_t* partial) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  uint32_t low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
  for (int mask = 16; mask > 0; mask >>= 1) {
    low |= __shfl_xor_sync(0xffffffffu, low, mask);
    high |= __shfl_xor_sync(0xffffffffu, high, mask);
  }
  if (lane == 0) partial[2 * warp] = low, partial[2 * warp + 1] = high;
  __syncthreads();
  low = high = 0;
  for (int w = 0; w < kPicardThreads / 32; ++w) low |= partial[2 * w], high |= partial[2 * w + 1];
  return (uint64_t{high} << 32) | low;
}

__device__ inline PicardState Advanced(const PicardArgs& a, PicardState s, int accepted,
                                       int known_end) {
  s.begin += accepted;
  ++s.passes;
  if (s.passes >= kPicardTrialPasses && s.begin < kPicardLeastGain * s.passes) s.sequential = 1;
  s.count = s.sequential ? min(1, a.steps - s.begin) : min(a.window, known_end - s.begin);
  if (s.begin == a.steps) s.count = 0;
  return s;
}

// Sweeps what is staged; the same in every thread: the steps that became final.
__device__ inline int SweepWindow(const PicardArgs& a, const PicardStage& s,
                                  const PicardState& state, int env, int known, uint32_t* partial) {
  uint64_t moved = 0;
  for (int i = threadIdx.x; i < a.elements; i += kPicardThreads)
    moved |= SweepElement(a, s, state.count, known, i);
  moved = BlockOr(moved, partial);
  const int accepted = moved ? __ffsll(static_cast<long long>(moved)) - 1 : state.count;
  for (int i = threadIdx.x; a.all_x && i < accepted * a.elements; i += kPicardThreads) {
    const int k = state.begin + i / a.elements;
    a.all_x[(static_cast<size_t>(k) * a.environments + env) * a.elements + i % a.elements] =
        s.x[a.elements + i];
  }
  return accepted;
}

}  // namespace dp

#endif  // KERNELS_PICARD_SWEEP_CUH_
