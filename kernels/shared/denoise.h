#ifndef KERNELS_SHARED_DENOISE_H_
#define KERNELS_SHARED_DENOISE_H_

#include "kernels/shared/host_device.h"

// One step of the reverse process, DDPM or DDIM, with constants made at load. Every product and sum
// is rounded by itself and in the order of diffusers, which is worth 1e-5 of a step near t = T.

namespace mjp {

enum class Prediction : int { kEpsilon, kSample, kV };

// Constants of the step at one timestep, float32. a = alphas_cumprod[t], p = that of the previous
// timestep of the schedule (1 where there is none).
struct DenoiseStep {
  float sqrt_a = 1, sqrt_1ma = 0;  // sqrt(a), sqrt(1 - a)
  // DDPM: x' = x0_scale x0 + x_scale x + sigma z; DDIM: x' = x0_scale x0 + eps_scale eps
  float x0_scale = 1, x_scale = 0, eps_scale = 0, sigma = 0;
  float clip = 0;  // x0 is clamped to +-clip; 0: not clamped
  int timestep = 0;
  Prediction prediction = Prediction::kEpsilon;
  bool ddim = false;
};

// float32 operations that no compiler contracts.
MJP_HOST_DEVICE inline float RoundedMul(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
MJP_HOST_DEVICE inline float RoundedAdd(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
MJP_HOST_DEVICE inline float RoundedDiv(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

// x0 as the network's output says, before the clip.
MJP_HOST_DEVICE inline float PredictedSample(const DenoiseStep& s, float x, float output) {
  switch (s.prediction) {
    case Prediction::kEpsilon:
      return RoundedDiv(RoundedAdd(x, -RoundedMul(s.sqrt_1ma, output)), s.sqrt_a);
    case Prediction::kSample:
      return output;
    case Prediction::kV:
      return RoundedAdd(RoundedMul(s.sqrt_a, x), -RoundedMul(s.sqrt_1ma, output));
  }
  return output;
}

// eps as the network's output says; never recomputed from a clipped x0.
MJP_HOST_DEVICE inline float PredictedNoise(const DenoiseStep& s, float x, float output) {
  switch (s.prediction) {
    case Prediction::kEpsilon:
      return output;
    case Prediction::kSample:
      return RoundedDiv(RoundedAdd(x, -RoundedMul(s.sqrt_a, output)), s.sqrt_1ma);
    case Prediction::kV:
      return RoundedAdd(RoundedMul(s.sqrt_a, output), RoundedMul(s.sqrt_1ma, x));
  }
  return output;
}

// One element of x after the step; `noise` is read by DDPM steps with sigma > 0 alone.
MJP_HOST_DEVICE inline float Denoise(const DenoiseStep& s, float x, float output, float noise) {
  float x0 = PredictedSample(s, x, output);
  if (s.clip > 0) x0 = x0 < -s.clip ? -s.clip : x0 > s.clip ? s.clip : x0;  // NaN passes
  const float mean = RoundedMul(s.x0_scale, x0);
  if (s.ddim) return RoundedAdd(mean, RoundedMul(s.eps_scale, PredictedNoise(s, x, output)));
  const float next = RoundedAdd(mean, RoundedMul(s.x_scale, x));
  return s.sigma > 0 ? RoundedAdd(next, RoundedMul(s.sigma, noise)) : next;
}

}  // namespace mjp

#endif  // KERNELS_SHARED_DENOISE_H_
