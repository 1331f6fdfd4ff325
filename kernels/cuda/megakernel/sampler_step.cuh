#ifndef KERNELS_CUDA_MEGAKERNEL_SAMPLER_STEP_CUH_
#define KERNELS_CUDA_MEGAKERNEL_SAMPLER_STEP_CUH_

#include "kernels/cuda/megakernel/epilogue_math.cuh"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/sampler/picard_sweep.cuh"

// What a persistent chain does between passes: every block takes the steps of the rows whose x it
// reads with the words of the last layer, one after the other or a window at a time.

namespace mjp {

// Asks for a line to be brought into the L2 cache.
__device__ __forceinline__ void PrefetchLine(const float* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// Asks for the FiLM terms of `count` steps from `first` on, which no pass has read yet, to be
// brought into the L2 cache. By the last of `threads` threads, which wait for nothing else, a line
// each.
__device__ __forceinline__ void PrefetchTerms(const ChainBlock& b, int first, int count, int thread,
                                              int threads) {
  constexpr int kLine = 128 / sizeof(float);
  const FilmArgs& f = b.a.film;
  const int line = (threads - 1 - thread) * gridDim.x + blockIdx.x;
  if (line * kLine >= f.width) return;
  for (int k = first; k < first + count; ++k) {
    const float* terms = f.step_table + static_cast<size_t>(b.a.schedule[k].timestep) * f.width;
    for (int i = line * kLine; i < f.width; i += threads * gridDim.x * kLine)
      PrefetchLine(terms + i);
  }
}

// Where the steps of a launch stand.
struct StepCount {
  int passes = 0;   // that take all rows to the end
  int stamped = 0;  // those that were made before
  int apart = 1;    // rows that may be at different steps: all, or the first one stands for them
};
__device__ __forceinline__ StepCount CountSteps(const ChainArgs& a, const PicardState* states) {
  StepCount c;
  for (int r = 0; r < a.rows; ++r) {
    c.passes = max(c.passes, a.end - states[r].begin);
    c.stamped = max(c.stamped, states[r].passes);
    if (states[r].begin != states[0].begin) c.apart = a.rows;
  }
  return c;
}

// The threads of a block that take steps, the `count` rows that they take them of, from `begin` on
// by `stride`, and whether they, of all blocks, write down what they make. A row beyond the last
// one is like that, and not written down.
struct StepTeam {
  int thread, threads;
  int begin, stride, count;
  bool writes;
};

// Takes each row's step of pass `pass`, if it has one left, with the words of the last layer, and
// sets the timesteps of the next pass. What it needs beside the words is asked for first; the next
// step's noise is brought into the L2 cache. A row's last step writes x and the network's output
// down.
__device__ __forceinline__ void TakeStep(ChainBlock& b, const PicardState* states, int apart,
                                         int pass, const StepTeam& t) {
  const ChainArgs& a = b.a;
  const int elements = a.length * a.action_dim, items = a.last.channels / a.last.item_channels;
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
    float* in_block = b.X(row) + e;
    const float before = *in_block;
    const float bias = b.head_bias[e % a.action_dim];
    const float* words = a.head_words + static_cast<size_t>(row) * items * elements + e;
    const float output =
        SumWords<kChainMaxSplits>(words, elements, items, b.parity, b.watch) + bias;
    const float x = Denoise(constants, before, output, noise);
    *in_block = x;
    if (!writes) continue;
    if (step + 1 == a.end) a.x[in_x] = x, a.output[in_x] = output;
    if (a.picard.all_x) a.picard.all_x[at] = x, a.picard.all_output[at] = output;
  }
  // by threads that wait for no words
#pragma unroll 1
  for (int i = t.threads - 1 - t.thread; i < t.count; i += t.threads) {
    const int row = min(t.begin + i * t.stride, a.rows - 1);
    b.timesteps[row] = a.schedule[min(states[row].begin + pass + 1, a.end - 1)].timestep;
  }
  // of the pass after the next
  for (int r = 0; r < apart; ++r)
    PrefetchTerms(b, min(states[r].begin + pass + 2, a.end - 1), 1, t.thread, t.threads);
}

// The next rows of an environment, from step `begin` on; their x stand at `x`.
__device__ __forceinline__ void SetRows(const ChainBlock& b, int env, int begin, int count,
                                        const float* x) {
  const PicardArgs& a = b.a.picard;
  for (int i = threadIdx.x; i < count * a.elements; i += kChainThreads) {
    const int row = env * a.window + i / a.elements;
    b.X(row)[i % a.elements] = x[i];
  }
  // by threads that set no x
  for (int j = kChainThreads - 1 - threadIdx.x; j < a.window; j += kChainThreads)
    b.timesteps[env * a.window + j] = a.schedule[min(begin + j, a.steps - 1)].timestep;
}

// What the sweeps of a block share.
struct ChainWindows {
  PicardState* states;  // shared: (environments)
  float* kept;          // shared: (environments, window, 2, elements)
  uint8_t* work;        // shared: of a sweep
  int* accepted;        // shared

  __device__ __forceinline__ PicardStage Stage(const PicardArgs& a, int env) const {
    return PlaceStage(work, a.window, a.elements,
                      kept + env * PicardKeptSize(a.window, a.elements));
  }
};

// Begins the windows of all environments, whose start stands in their first row.
__device__ __forceinline__ void StartWindows(ChainBlock& b, const ChainWindows& w) {
  const PicardArgs& a = b.a.picard;
  for (int env = 0; env < a.environments; ++env) {
    const PicardStage stage = w.Stage(a, env);
    const float* start = b.X(env * a.window);
    for (int e = threadIdx.x; e < a.elements; e += kChainThreads) stage.x[e] = start[e];
    const PicardState first = BeginWindow(a, stage, env);
    SetRows(b, env, 0, first.count, stage.x);
    if (threadIdx.x == 0) w.states[env] = first;
    SyncPicardThreads();
  }
}

// Stages what the words of the last layer say at the rows of an environment. What that needs
// beside the words is asked for first.
__device__ __forceinline__ void StageWords(ChainBlock& b, const PicardState& state, int env,
                                           const PicardStage& stage) {
  const PicardArgs& a = b.a.picard;
  const ChainSource& last = b.a.last;
  const int n = a.elements, quads = n / 4, items = last.channels / last.item_channels;
  for (int i = threadIdx.x; i < state.count * quads; i += kChainThreads) {
    const int j = i / quads, e = (i - j * quads) * 4, row = env * a.window + j;
    const DenoiseStep step = a.schedule[state.begin + j];
    const float* at = b.a.head_words + static_cast<size_t>(row) * items * n + e;
    uint4 words[kChainMaxSplits] = {};
    AskWords4(words, at, n, items, b.parity);
    const float4 sums = SumWords4(words, at, n, b.parity, b.watch);
    const float sum[4] = {sums.x, sums.y, sums.z, sums.w};
    const float* x = b.X(row) + e;
#pragma unroll
    for (int c = 0; c < 4; ++c)
      StageOutput(a, state, env, j, e + c, step, x[c], sum[c] + b.head_bias[(e + c) % a.action_dim],
                  stage);
  }
}

// Takes the windows of all environments on with the words of the last layer; every block does the
// same. Returns whether all chains are done or gave up.
__device__ __forceinline__ bool TakeWindows(ChainBlock& b, const ChainWindows& w) {
  const PicardArgs& a = b.a.picard;
  bool done = true;
  for (int env = 0; env < a.environments; ++env) {
    const PicardState state = w.states[env];
    if (state.begin == a.steps || state.sequential) continue;
    const PicardStage stage = w.Stage(a, env);
    AskPicardNoise(a, state, env, PicardReach(a, state), stage);
    StageWords(b, state, env, stage);
    // of the rows that the next pass may have and this one had not
    const int known = state.evaluated + a.window;
    PrefetchTerms(b, known, min(state.begin + 2 * a.window, a.steps) - known, threadIdx.x,
                  kChainThreads);
    const int accepted = SweepWindow(a, stage, state, env, w.accepted);
    const PicardState next = Advanced(a, state, accepted);
    const float* x = stage.x + accepted * a.elements;
    SetRows(b, env, next.begin, next.count, x);
    const bool finished = next.begin == a.steps || next.sequential;
    for (int e = threadIdx.x; finished && blockIdx.x == 0 && e < a.elements; e += kChainThreads)
      a.x[env * a.elements + e] = x[e];
    done = done && finished;
    if (threadIdx.x == 0) w.states[env] = next;
    SyncPicardThreads();
  }
  return done;
}

// Notes the time as stamp `index`, by the first of a block's threads.
__device__ __forceinline__ void StampPass(const ChainArgs& a, int index, int thread) {
  if (blockIdx.x == 0 && thread == 0 && index < a.stamps.capacity)
    a.stamps.times[index] = GlobalNanoseconds();
}

// Where each row's steps begin: at `begin`, or where its window gave up.
__device__ __forceinline__ StepCount StartSteps(ChainBlock& b, PicardState* states) {
  const ChainArgs& a = b.a;
  for (int r = threadIdx.x; r < a.rows; r += kChainThreads) {
    states[r] = a.picard.state ? a.picard.state[r] : PicardState{a.begin, 0, a.begin, 0, 0};
    b.timesteps[r] = a.schedule[min(states[r].begin, a.end - 1)].timestep;
  }
  SyncPicardThreads();
  return CountSteps(a, states);
}

// Ends pass `pass`, counted from 1: takes its steps, after the last one only to write them down.
__device__ __forceinline__ void EndStep(ChainBlock& b, const PicardState* states,
                                        const StepCount& steps, int pass, const StepTeam& team) {
  if (pass < steps.passes || team.writes) TakeStep(b, states, steps.apart, pass - 1, team);
  StampPass(b.a, steps.stamped + pass, team.thread);
}

// Writes down where the environments stand after `passes` more.
__device__ __forceinline__ void KeepStates(const ChainArgs& a, const PicardState* states) {
  const bool windows = a.picard.window > 0;
  const int count = windows ? a.picard.environments : a.rows;
  SyncPicardThreads();
  for (int i = threadIdx.x; a.picard.state && blockIdx.x == 0 && i < count; i += kChainThreads) {
    PicardState state = states[i];
    if (!windows) state.passes += a.end - state.begin, state.begin = a.end;
    a.picard.state[i] = state;
  }
}

// Step by step, or a window of steps at a time: one loop for both, since the instructions of a pass
// are to stay in the caches. run(pass) makes a pass of the network, counted from 1. kSteps: takes
// the steps of the rows of `team`; otherwise other threads of the block do. Returns the passes.
template <bool kWindows, bool kSteps, typename Run>
__device__ __forceinline__ int RunPasses(ChainBlock& b, const ChainWindows& w, const StepTeam& team,
                                         const Run& run) {
  const bool windows = kWindows && b.a.picard.window > 0;
  StepCount steps;
  int pass = 0;
  if (windows) {
    StartWindows(b, w);
  } else {
    steps = StartSteps(b, w.states);
  }
  for (bool done = false; !done;) {
    run(++pass);
    if (windows) {
      done = TakeWindows(b, w);
      StampPass(b.a, pass, threadIdx.x);
    } else {
      done = pass == steps.passes;
      if (kSteps) EndStep(b, w.states, steps, pass, team);
    }
  }
  KeepStates(b.a, w.states);
  return pass;
}

// Whether nothing was given up.
__device__ __forceinline__ bool NothingLeft(const ChainArgs& a) {
  if (a.picard.window > 0 || !a.picard.state) return false;
  bool done = true;
  for (int r = 0; r < a.rows; ++r) done = done && a.picard.state[r].begin == a.end;
  return done;
}

// Brings the stages into shared memory.
template <typename Stage>
__device__ __forceinline__ void LoadStages(Stage* to, const Stage* from, int count) {
  const int words = count * static_cast<int>(sizeof(Stage) / 4);
  for (int i = threadIdx.x; i < words; i += kChainThreads)
    reinterpret_cast<uint32_t*>(to)[i] = reinterpret_cast<const uint32_t*>(from)[i];
}

// Brings part `part` of `parts` of the channels of the first and the last layer's weights, and the
// start x, of the first row of each environment, into shared memory.
__device__ __forceinline__ void LoadEnds(const ChainBlock& b, float* first, float* head,
                                         float* head_bias, int part, int parts) {
  const ChainArgs& a = b.a;
  const auto load = [&](float* to, const float* from, int terms, int all) {
    const int channels = all / parts;
    for (int i = threadIdx.x; i < terms * channels; i += kChainThreads)
      to[i] = from[i / channels * all + part * channels + i % channels];
  };
  const int terms = a.first.taps * a.first.in_c, out_c = a.first.out_c;
  load(first, a.first.weight, terms, out_c);
  load(first + terms * (out_c / parts), a.first.residual_weight, a.first.in_c, out_c);
  load(head, a.head_weight, a.action_dim, a.last.channels);
  for (int i = threadIdx.x; i < a.action_dim; i += kChainThreads) head_bias[i] = a.head_bias[i];
  const int elements = a.length * a.action_dim, window = max(1, a.picard.window);
  for (int i = threadIdx.x; i < a.rows * b.XPitch(); i += kChainThreads) {
    const int row = i / b.XPitch(), e = i % b.XPitch() - a.border;
    const bool live = row % window == 0 && e >= 0 && e < elements;
    b.x[i] = live ? a.x[row / window * elements + e] : 0.0f;
  }
  SyncPicardThreads();
}

// Launches a persistent kernel, all of whose blocks run at once. Throws Error(kRetryable).
template <auto kKernel, typename Args>
void LaunchPersistent(const Args& args, int blocks, size_t shared_bytes, cudaStream_t stream,
                      int threads = kChainThreads) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kFusedMaxSharedBytes);
  CheckCuda(allowed, "shared memory of the denoising chain");
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CheckCuda(cudaLaunchKernelEx(&config, kKernel, args), "denoising chain");
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_SAMPLER_STEP_CUH_
