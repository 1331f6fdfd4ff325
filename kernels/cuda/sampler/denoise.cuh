#ifndef KERNELS_CUDA_SAMPLER_DENOISE_CUH_
#define KERNELS_CUDA_SAMPLER_DENOISE_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/shared/denoise.h"
#include "kernels/shared/format.h"

namespace mjp {

// Names the noise of one environment's decision, as in NormalQuad.
struct NoiseAddress {
  uint64_t seed;
  uint32_t decision, unused;
};

// Makes the start x and the noise of every step of a chain.
struct NoiseArgs {
  int environments = 0, elements = 0;  // elements = horizon * action_dim of one environment
  int steps = 0;
  float temperature = 1;               // deviation of the noise
  const int* timesteps = nullptr;      // (steps), the addresses of the noise
  const NoiseAddress* keys = nullptr;  // (environments)
  const int* keep = nullptr;           // device flags: [0] leave the start, [1] the noise
  float* start = nullptr;              // (environments, elements)
  float* noise = nullptr;              // (steps, environments, elements); null: DDIM
};
void LaunchNoise(const NoiseArgs& args, cudaStream_t stream);

// One step of the reverse process on every element, and the network's next input.
struct DenoiseArgs {
  DenoiseStep step;
  int positions = 0;              // environments * horizon
  int action_dim = 0, pitch = 0;  // channels of x, and of the network's input (zeros beyond)
  const float* output = nullptr;  // (positions, action_dim) of the network; null: only copy x
  const float* noise = nullptr;   // (positions, action_dim) or null
  const float* x = nullptr;       // (positions, action_dim)
  float* next = nullptr;          // (positions, action_dim); may be x itself
  void* input = nullptr;          // (positions, pitch), storage
};
void LaunchDenoise(Format format, const DenoiseArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_DENOISE_CUH_
