#ifndef KERNELS_CUDA_SAMPLER_IMAGE_STEP_CUH_
#define KERNELS_CUDA_SAMPLER_IMAGE_STEP_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/sampler/denoise.cuh"

namespace mjp {

// One sampler step whose index the device counts, so that one launch serves every step of a loop:
// noise made in place, constants from a table, and the network's next input.
struct ImageStepArgs {
  int rows = 0, positions = 0;            // pictures, and pixels of each
  int channels = 0, pitch = 0;            // of x, and of the network's input (zeros beyond)
  int steps = 0;                          // of the schedule
  const DenoiseStep* schedule = nullptr;  // (steps)
  const NoiseAddress* keys = nullptr;     // (rows)
  int* row_step = nullptr;                // (rows), alike: the step at which the network just ran;
                                          // -1: x becomes the start. Counted up.
  int* arrivals = nullptr;                // CTAs that are done; zero between launches
  const float* output = nullptr;          // (rows, positions, channels) of the network
  float* x = nullptr;                     // likewise
  void* input = nullptr;                  // (rows, positions, pitch), storage
};

// Enqueues the step. Where `loop` is not null, it becomes 0 after the last one.
void LaunchImageStep(Format format, const ImageStepArgs& args,
                     const cudaGraphConditionalHandle* loop, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_IMAGE_STEP_CUH_
