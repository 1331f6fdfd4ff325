#ifndef KERNELS_CUDA_MEGAKERNEL_SAMPLER_STEP_CUH_
#define KERNELS_CUDA_MEGAKERNEL_SAMPLER_STEP_CUH_

#include "kernels/cuda/megakernel/cta_state.cuh"
#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/cuda/sampler/picard_sweep.cuh"

// What happens between passes: every CTA runs the sampler step of the rows whose x
// it reads, from the head's partial sums; step by step, or a Picard window of steps at a time
// (ParaDiGMS, Shih et al. 2023; policy/sampler.h).

namespace mjp::megakernel {

// Prefetches a line into L2.
__device__ __forceinline__ void PrefetchLine(const float* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// Prefetches the FiLM terms of `count` steps from `first` on, which no pass has read yet, into L2.
// By the last of `threads` threads, which poll nothing, a line each.
__device__ __forceinline__ void PrefetchFilm(const CtaState& cta, int first, int count, int thread,
                                             int threads) {
  constexpr int kLine = 128 / sizeof(float);
  const FilmTables& f = cta.a.film;
  const int line = (threads - 1 - thread) * gridDim.x + blockIdx.x;
  if (line * kLine >= f.width) return;
  for (int k = first; k < first + count; ++k) {
    const float* terms = f.step_table + static_cast<size_t>(cta.a.schedule[k].timestep) * f.width;
    for (int i = line * kLine; i < f.width; i += threads * gridDim.x * kLine)
      PrefetchLine(terms + i);
  }
}

// Where the steps of a launch stand.
struct StepCount {
  int passes = 0;             // that take all rows to the end
  int timestamps_before = 0;  // of passes before this launch
  int distinct_rows = 1;      // rows whose step may differ; 1: all are at the same step
};
__device__ __forceinline__ StepCount CountSteps(const CommonArgs& a, const PicardState* states) {
  StepCount c;
  for (int r = 0; r < a.rows; ++r) {
    c.passes = max(c.passes, a.end - states[r].begin);
    c.timestamps_before = max(c.timestamps_before, states[r].passes);
    if (states[r].begin != states[0].begin) c.distinct_rows = a.rows;
  }
  return c;
}

// Which threads of a CTA run the sampler step, for the `count` rows begin, begin + stride, ...; a
// row beyond the last one computes what the last one does. `writes`: this CTA is the one that
// stores x and the output.
struct SamplerThreads {
  int thread, threads;
  int begin, stride, count;
  bool writes;
};

// Runs each row's sampler step after pass `pass`, if it has one left, on the head's partial sums,
// and sets the timesteps of the next pass. Everything else is loaded before those are polled; the
// next step's noise is prefetched into L2. A row's last step stores x and the network's output.
__device__ __forceinline__ void SamplerStep(CtaState& cta, const PicardState* states,
                                            int distinct_rows, int pass, const SamplerThreads& t) {
  const CommonArgs& a = cta.a;
  const int elements = a.length * a.action_dim, groups = a.last_channels / a.last_group_channels;
  for (int i = t.thread; i < t.count * elements; i += t.threads) {
    const int wanted = t.begin + i / elements * t.stride, row = min(wanted, a.rows - 1);
    const int e = i % elements, step = states[row].begin + pass;
    const bool writes = t.writes && wanted < a.rows;
    if (step >= a.end) continue;
    const DenoiseStep constants = a.schedule[step];
    const int in_x = row * elements + e;
    const size_t at = static_cast<size_t>(step) * a.all_rows * elements + in_x;
    const float noise = a.noise ? a.noise[at] : 0.0f;
    if (a.noise && writes && step + 1 < a.end) PrefetchLine(a.noise + at + a.all_rows * elements);
    float* in_cta = cta.X(row) + e;
    const float before = *in_cta;
    const float bias = cta.head_bias[e % a.action_dim];
    const float* sums = a.head_partial_sums + static_cast<size_t>(row) * groups * elements + e;
    const float output =
        ReceiveSum<kNormGroups>(sums, elements, groups, cta.epoch, cta.watchdog) + bias;
    const float x = Denoise(constants, before, output, noise);
    *in_cta = x;
    if (!writes) continue;
    if (step + 1 == a.end) a.x[in_x] = x, a.output[in_x] = output;
    if (a.picard.all_x) a.picard.all_x[at] = x, a.picard.all_output[at] = output;
  }
  // by threads that poll nothing
#pragma unroll 1
  for (int i = t.threads - 1 - t.thread; i < t.count; i += t.threads) {
    const int row = min(t.begin + i * t.stride, a.rows - 1);
    cta.timesteps[row] = a.schedule[min(states[row].begin + pass + 1, a.end - 1)].timestep;
  }
  // of the pass after the next
  for (int r = 0; r < distinct_rows; ++r)
    PrefetchFilm(cta, min(states[r].begin + pass + 2, a.end - 1), 1, t.thread, t.threads);
}

// The next rows of an environment, from step `begin` on; their x stand at `x`.
__device__ __forceinline__ void SetRows(const CtaState& cta, int env, int begin, int count,
                                        const float* x) {
  const PicardSweepArgs& a = cta.a.picard;
  for (int i = threadIdx.x; i < count * a.elements; i += kMmaThreads) {
    const int row = env * a.window + i / a.elements;
    cta.X(row)[i % a.elements] = x[i];
  }
  // by threads that set no x
  for (int j = kMmaThreads - 1 - threadIdx.x; j < a.window; j += kMmaThreads)
    cta.timesteps[env * a.window + j] = a.schedule[min(begin + j, a.steps - 1)].timestep;
}

// What the Picard sweeps of a CTA share. Between passes no tile is multiplied and none normalised,
// so `work` is the place of the input, and `accepted` that of the moments.
struct PicardWindows {
  PicardState* states;  // shared: (environments)
  float* previous;      // shared: (environments, window, 2, elements)
  uint8_t* work;        // shared: of a sweep
  int* accepted;        // shared

  __device__ __forceinline__ PicardScratch Scratch(const PicardSweepArgs& a, int env) const {
    return PlacePicardScratch(work, a.window, a.elements,
                              previous + env * PicardPreviousSize(a.window, a.elements));
  }
};

// Begins the windows of all environments, whose start stands in their first row.
__device__ __forceinline__ void StartWindows(CtaState& cta, const PicardWindows& w) {
  const PicardSweepArgs& a = cta.a.picard;
  for (int env = 0; env < a.environments; ++env) {
    const PicardScratch scratch = w.Scratch(a, env);
    const float* start = cta.X(env * a.window);
    for (int e = threadIdx.x; e < a.elements; e += kMmaThreads) scratch.x[e] = start[e];
    const PicardState first = BeginWindow(a, scratch, env);
    SetRows(cta, env, 0, first.count, scratch.x);
    if (threadIdx.x == 0) w.states[env] = first;
    SyncPicardThreads();
  }
}

// Records the network's outputs at the rows of an environment, from the head's partial sums.
// Everything else is loaded before those are polled.
__device__ __forceinline__ void RecordOutputs(CtaState& cta, const PicardState& state, int env,
                                              const PicardScratch& scratch) {
  const PicardSweepArgs& a = cta.a.picard;
  const int n = a.elements, quads = n / 4, groups = cta.a.last_channels / cta.a.last_group_channels;
  for (int i = threadIdx.x; i < state.count * quads; i += kMmaThreads) {
    const int j = i / quads, e = (i - j * quads) * 4, row = env * a.window + j;
    const DenoiseStep step = a.schedule[state.begin + j];
    const float* at = cta.a.head_partial_sums + static_cast<size_t>(row) * groups * n + e;
    uint4 tagged[kNormGroups] = {};
    IssueTagged4(tagged, at, n, groups, cta.epoch);
    const float4 sums = ReceiveSum4(tagged, at, n, cta.epoch, cta.watchdog);
    const float sum[4] = {sums.x, sums.y, sums.z, sums.w};
    const float* x = cta.X(row) + e;
#pragma unroll
    for (int c = 0; c < 4; ++c)
      RecordOutput(a, state, env, j, e + c, step, x[c],
                   sum[c] + cta.head_bias[(e + c) % a.action_dim], scratch);
  }
}

// Advances the windows of all environments after a pass; every CTA does the same. Returns whether
// all chains are done or abandoned their windows.
__device__ __forceinline__ bool AdvanceWindows(CtaState& cta, const PicardWindows& w) {
  const PicardSweepArgs& a = cta.a.picard;
  bool done = true;
  for (int env = 0; env < a.environments; ++env) {
    const PicardState state = w.states[env];
    if (state.begin == a.steps || state.sequential) continue;
    const PicardScratch scratch = w.Scratch(a, env);
    PrefetchPicardNoise(a, state, env, PicardLookahead(a, state), scratch);
    RecordOutputs(cta, state, env, scratch);
    // of the steps that the next pass may evaluate and this one did not
    const int prefetched = state.evaluated + a.window;
    PrefetchFilm(cta, prefetched, min(state.begin + 2 * a.window, a.steps) - prefetched,
                 threadIdx.x, kMmaThreads);
    const int accepted = SweepWindow(a, scratch, state, env, w.accepted);
    const PicardState next = AdvancedState(a, state, accepted);
    const float* x = scratch.x + accepted * a.elements;
    SetRows(cta, env, next.begin, next.count, x);
    const bool finished = next.begin == a.steps || next.sequential;
    for (int e = threadIdx.x; finished && blockIdx.x == 0 && e < a.elements; e += kMmaThreads)
      a.x[env * a.elements + e] = x[e];
    done = done && finished;
    if (threadIdx.x == 0) w.states[env] = next;
    SyncPicardThreads();
  }
  return done;
}

// Records the time as timestamp `index`, by thread 0 of CTA 0.
__device__ __forceinline__ void RecordTimestamp(const CommonArgs& a, int index, int thread) {
  if (blockIdx.x == 0 && thread == 0 && index < a.timestamps.capacity)
    a.timestamps.times[index] = GlobalNanoseconds();
}

// Where each row's steps begin: at `begin`, or where its window was abandoned.
__device__ __forceinline__ StepCount StartSteps(CtaState& cta, PicardState* states) {
  const CommonArgs& a = cta.a;
  for (int r = threadIdx.x; r < a.rows; r += kMmaThreads) {
    states[r] = a.picard.state ? a.picard.state[r] : PicardState{a.begin, 0, a.begin, 0, 0};
    cta.timesteps[r] = a.schedule[min(states[r].begin, a.end - 1)].timestep;
  }
  SyncPicardThreads();
  return CountSteps(a, states);
}

// Ends pass `pass`, counted from 1: runs its sampler steps; the last ones only where they are
// stored.
__device__ __forceinline__ void EndSequentialPass(CtaState& cta, const PicardState* states,
                                                  const StepCount& steps, int pass,
                                                  const SamplerThreads& sampler) {
  if (pass < steps.passes || sampler.writes)
    SamplerStep(cta, states, steps.distinct_rows, pass - 1, sampler);
  RecordTimestamp(cta.a, steps.timestamps_before + pass, sampler.thread);
}

// Stores where the environments stand.
__device__ __forceinline__ void StoreStates(const CommonArgs& a, const PicardState* states) {
  const bool windows = a.picard.window > 0;
  const int count = windows ? a.picard.environments : a.rows;
  SyncPicardThreads();
  for (int i = threadIdx.x; a.picard.state && blockIdx.x == 0 && i < count; i += kMmaThreads) {
    PicardState state = states[i];
    if (!windows) state.passes += a.end - state.begin, state.begin = a.end;
    a.picard.state[i] = state;
  }
}

// Step by step, or a window of steps at a time: one loop for both, since a pass' instructions must
// stay in the instruction caches. run(pass) runs the network, counted from 1. kSteps: runs the
// sampler steps of `sampler`'s rows; otherwise other threads of the CTA do. Returns the passes.
template <bool kSteps, typename Run>
__device__ __forceinline__ int RunPasses(CtaState& cta, const PicardWindows& w,
                                         const SamplerThreads& sampler, const Run& run) {
  const bool windows = cta.a.picard.window > 0;
  StepCount steps;
  int pass = 0;
  if (windows) {
    StartWindows(cta, w);
  } else {
    steps = StartSteps(cta, w.states);
  }
  for (bool done = false; !done;) {
    run(++pass);
    if (windows) {
      done = AdvanceWindows(cta, w);
      RecordTimestamp(cta.a, pass, threadIdx.x);
    } else {
      done = pass == steps.passes;
      if (kSteps) EndSequentialPass(cta, w.states, steps, pass, sampler);
    }
  }
  StoreStates(cta.a, w.states);
  return pass;
}

// Whether this launch is to finish abandoned windows, and there are none.
__device__ __forceinline__ bool NothingToDo(const CommonArgs& a) {
  if (a.picard.window > 0 || !a.picard.state) return false;
  bool done = true;
  for (int r = 0; r < a.rows; ++r) done = done && a.picard.state[r].begin == a.end;
  return done;
}

// Copies the layers into shared memory.
__device__ __forceinline__ void LoadLayers(Layer* to, const Layer* from, int count) {
  const int count32 = count * static_cast<int>(sizeof(Layer) / 4);
  for (int i = threadIdx.x; i < count32; i += kMmaThreads)
    reinterpret_cast<uint32_t*>(to)[i] = reinterpret_cast<const uint32_t*>(from)[i];
}

// Copies part `part` of `parts` of the channels of the first convolution's and the head's weights,
// and x at the start, of the first row of each environment, into shared memory.
__device__ __forceinline__ void LoadInOutWeights(const CtaState& cta, float* first, float* head,
                                                 float* head_bias, int part, int parts) {
  const CommonArgs& a = cta.a;
  const auto load = [&](float* to, const float* from, int terms, int all) {
    const int channels = all / parts;
    for (int i = threadIdx.x; i < terms * channels; i += kMmaThreads)
      to[i] = from[i / channels * all + part * channels + i % channels];
  };
  const int terms = a.first.taps * a.first.in_c, out_c = a.first.out_c;
  load(first, a.first.weight, terms, out_c);
  load(first + terms * (out_c / parts), a.first.shortcut_weight, a.first.in_c, out_c);
  load(head, a.head.weight, a.action_dim, a.last_channels);
  for (int i = threadIdx.x; i < a.action_dim; i += kMmaThreads) head_bias[i] = a.head.bias[i];
  const int elements = a.length * a.action_dim, window = max(1, a.picard.window);
  for (int i = threadIdx.x; i < a.rows * cta.XPitch(); i += kMmaThreads) {
    const int row = i / cta.XPitch(), e = i % cta.XPitch() - a.x_halo;
    const bool live = row % window == 0 && e >= 0 && e < elements;
    cta.x[i] = live ? a.x[row / window * elements + e] : 0.0f;
  }
  SyncPicardThreads();
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_SAMPLER_STEP_CUH_
