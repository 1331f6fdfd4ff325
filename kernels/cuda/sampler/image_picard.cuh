#ifndef KERNELS_CUDA_SAMPLER_IMAGE_PICARD_CUH_
#define KERNELS_CUDA_SAMPLER_IMAGE_PICARD_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/sampler/denoise.cuh"

// Time-parallel denoising (Picard iteration over a window of steps, as ParaDiGMS, Shih et al. 2023)
// of rows with many elements (pictures): the network evaluates a window of steps of every chain in
// one pass; then the steps are taken again with each step's v = sqrt(a) eps - sqrt(1 - a) x0
// frozen. A step whose input moved by little is final, and the window moves past it. Its first step
// has the sequential chain's input, so the fixed point is the sequential chain.

namespace mjp {

struct ImagePicardArgs {
  int chains = 0, window = 0, steps = 0;
  int positions = 0, channels = 0, pitch = 0;  // of one row, as in ImageStepArgs
  float tolerance = 0;                         // root mean square, times max(sqrt(1 - a), 0.05)
  const DenoiseStep* schedule = nullptr;       // (steps)
  const NoiseAddress* keys = nullptr;          // (chains)
  int* begin = nullptr;                        // (chains): steps before this are final
  int* passes = nullptr;                       // (chains): made until the chain was done
  unsigned long long* moved = nullptr;         // (chains, window): sums of squares, fixed point
  int* arrivals = nullptr;                     // CTAs that are done; zero between launches
  int* row_step = nullptr;                     // (chains, window): what the next pass evaluates
  const float* output = nullptr;               // (chains, window, elements) of the network
  float* evaluated = nullptr;                  // likewise: x that the network reads
  float* ahead = nullptr;                      // (chains, 2 window, elements): x after each step
  void* input = nullptr;                       // (chains, window, positions, pitch), storage
  float* x = nullptr;                          // (chains, elements): the result
};

// Whether rows of this size fit the kernels: elements in multiples of four.
bool ImagePicardSupports(const ImagePicardArgs& args);
// Enqueues the beginning of all chains; the first window is what x0 = 0, the middle of the range,
// would give: the first steps depend on it little.
void LaunchImagePicardStart(Format format, const ImagePicardArgs& args, cudaStream_t stream);
// Enqueues what follows a pass. Where `loop` is not null, it becomes 0 when all chains are done.
void LaunchImagePicard(Format format, const ImagePicardArgs& args,
                       const cudaGraphConditionalHandle* loop, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_IMAGE_PICARD_CUH_
