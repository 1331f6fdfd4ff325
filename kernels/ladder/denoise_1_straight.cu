// Rung 1: the formulas as they are printed. Predict x0, clamp it, mix it with x, add noise: a
// launch each, as a framework runs them, and every thread multiplies the alphas up to its timestep
// to know the constants. For 32 values the launches and the cosines are all there is.

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/ladder/denoise.cuh"

namespace mjp::ladder {
namespace {

constexpr int kThreads = 128;

__device__ float SquaredCosine(float fraction) {
  const float c = cosf((fraction + 0.008f) / 1.008f * 1.57079633f);
  return c * c;
}

// alpha of step t, and the product of those up to it.
struct Alphas {
  float alpha = 1, product = 1;

  __device__ Alphas(int t, int timesteps) {
    for (int s = 0; s <= t; ++s) {
      const float from = static_cast<float>(s) / timesteps,
                  to = static_cast<float>(s + 1) / timesteps;
      alpha = fmaxf(SquaredCosine(to) / SquaredCosine(from), 1.0f - 0.999f);
      product *= alpha;
    }
  }
};

__device__ int Index() {
  WaitForPredecessor();
  ReleaseSuccessor();
  return blockIdx.x * kThreads + threadIdx.x;
}

__global__ void PredictKernel(const DenoiseArgs a) {
  const int i = Index();
  if (i >= a.count) return;
  const Alphas now(a.timestep, a.timesteps);
  a.x0[i] = (a.x[i] - sqrtf(1 - now.product) * a.output[i]) / sqrtf(now.product);
}

__global__ void ClampKernel(const DenoiseArgs a) {
  const int i = Index();
  if (i < a.count) a.x0[i] = fminf(fmaxf(a.x0[i], -1.0f), 1.0f);
}

__global__ void MeanKernel(const DenoiseArgs a) {
  const int i = Index();
  if (i >= a.count) return;
  const Alphas now(a.timestep, a.timesteps), before(a.timestep - 1, a.timesteps);
  a.mean[i] = (sqrtf(before.product) * (1 - now.alpha) * a.x0[i] +
               sqrtf(now.alpha) * (1 - before.product) * a.x[i]) /
              (1 - now.product);
}

__global__ void NoiseKernel(const DenoiseArgs a) {
  const int i = Index();
  if (i >= a.count) return;
  const Alphas now(a.timestep, a.timesteps), before(a.timestep - 1, a.timesteps);
  const float variance = (1 - before.product) / (1 - now.product) * (1 - now.alpha);
  a.next[i] = a.mean[i] + (a.timestep > 0 ? sqrtf(fmaxf(variance, 1e-20f)) * a.noise[i] : 0.0f);
}

}  // namespace

void DenoiseStraight(const DenoiseArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.count + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  Launch(PredictKernel, shape, stream, "predicted sample", a);
  Launch(ClampKernel, shape, stream, "clamp", a);
  Launch(MeanKernel, shape, stream, "mean of the step", a);
  Launch(NoiseKernel, shape, stream, "noise of the step", a);
}

}  // namespace mjp::ladder
