#ifndef KERNELS_CUDA_SAMPLER_PICARD_CUH_
#define KERNELS_CUDA_SAMPLER_PICARD_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/shared/denoise.h"
#include "kernels/shared/format.h"

// Time-parallel denoising on the device (Picard iteration over a window of steps, as ParaDiGMS,
// Shih et al. 2023): between two network passes over a window, the steps are taken again with every
// step's v as it was evaluated, corrected by the secant through the evaluation before
// (policy/sampler.h).

namespace mjp {

inline constexpr int kMaxPicardWindow = 64;

// Where one environment's chain stands.
struct PicardState {
  int begin;  // steps before this are final
  int count;  // steps of the window that the next pass evaluates
  int passes;
  int sequential;  // the window gained too little, and was abandoned
  int evaluated;   // the network has been evaluated at steps below this
};

// What every form of it reads.
struct PicardSweepArgs {
  int environments = 0, window = 0, steps = 0;
  int elements = 0, action_dim = 0;       // horizon * action_dim; channels of x
  float tolerance = 0;                    // see PicardLimit in picard_step.h
  const DenoiseStep* schedule = nullptr;  // (steps)
  const float* noise = nullptr;           // (steps, environments, elements); null: DDIM
  float* x = nullptr;                     // (environments, elements); in: start, out: result
  PicardState* state = nullptr;           // (environments)
  float *all_x = nullptr, *all_output = nullptr;  // (steps, environments, elements) or null: trace
};
// What the sweep of the kernels below reads besides, which stands between passes in launches of
// their own.
struct PicardArgs : PicardSweepArgs {
  int pitch = 0;                  // channels of the network's input
  const float* output = nullptr;  // (environments, window, elements) of the network
  float* evaluated = nullptr;     // likewise: x that the network reads
  void* input = nullptr;          // (environments * window, horizon, pitch), storage
  int* row_step = nullptr;        // (environments * window): timesteps
  float* previous = nullptr;      // (environments, window, 2, elements): evaluations before
  int* remaining = nullptr;       // environments that are neither done nor abandoned
};

// Whether a window of this size fits the kernel and the GPU's shared memory.
bool PicardSupports(const PicardSweepArgs& args, const GpuTraits& gpu);
// Enqueues the beginning of a chain: a guess at its first window.
void LaunchPicardStart(Format format, const PicardArgs& args, cudaStream_t stream);
// Enqueues the beginning of the sequential fallback of abandoned windows: `args` as before, but
// with a window of 1 and another network's rows, one for each environment. Where `loop` is not
// null, it becomes 1 if there are any.
void LaunchPicardFallback(Format format, const PicardArgs& args,
                          const cudaGraphConditionalHandle* loop, cudaStream_t stream);
// Enqueues one sweep after a pass. Where `loop` is not null, it becomes 0 when all chains are done
// or, with a window of more than 1, abandoned.
void LaunchPicardSweep(Format format, const PicardArgs& args,
                       const cudaGraphConditionalHandle* loop, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_PICARD_CUH_
