// The chain's noise and its steps: a thread per four values or per element. Constants come as
// kernel arguments, so a step reads x, the network's output and the noise once and writes x once.

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/denoise.cuh"
#include "kernels/shared/philox.h"

namespace mjp {
namespace {

constexpr int kThreads = 128;

// grid: (quads of the environments, 1 + steps); y = 0 is the start
__global__ void NoiseKernel(const NoiseArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  if (a.keep[blockIdx.y > 0]) return;
  const int quads = (a.elements + 3) / 4;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.environments * quads) return;
  const int env = i / quads, quad = i % quads, step = static_cast<int>(blockIdx.y) - 1;
  const NoiseAddress key = a.keys[env];
  float normals[4];
  NormalQuad(key.seed, key.decision,
             step < 0 ? kStartStep : static_cast<uint32_t>(a.timesteps[step]),
             static_cast<uint32_t>(quad), normals);
  float* out =
      step < 0 ? a.start : a.noise + static_cast<size_t>(step) * a.environments * a.elements;
  for (int e = 0; e < 4 && quad * 4 + e < a.elements; ++e)
    out[static_cast<size_t>(env) * a.elements + quad * 4 + e] = a.temperature * normals[e];
}

template <typename T>
__global__ void DenoiseKernel(const DenoiseArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.positions * a.pitch) return;
  const int position = i / a.pitch, c = i % a.pitch;
  float next = 0.0f;
  if (c < a.action_dim) {
    const int at = position * a.action_dim + c;
    next = a.x[at];
    if (a.output) next = Denoise(a.step, next, a.output[at], a.noise ? a.noise[at] : 0.0f);
    a.next[at] = next;
  }
  static_cast<T*>(a.input)[i] = FromFloat<T>(next);
}

}  // namespace

void LaunchNoise(const NoiseArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  const int threads = a.environments * ((a.elements + 3) / 4);
  shape.grid = dim3((threads + kThreads - 1) / kThreads, a.noise ? 1 + a.steps : 1);
  shape.block = dim3(kThreads);
  Launch(NoiseKernel, shape, stream, "noise", a);
}

void LaunchDenoise(Format format, const DenoiseArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.positions * a.pitch + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  if (format == Format::kFp16) return Launch(DenoiseKernel<__half>, shape, stream, "denoise", a);
  if (format == Format::kBf16)
    return Launch(DenoiseKernel<__nv_bfloat16>, shape, stream, "denoise", a);
  Launch(DenoiseKernel<float>, shape, stream, "denoise", a);
}

}  // namespace mjp
