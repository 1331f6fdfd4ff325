#ifndef KERNELS_SHARED_PICARD_STEP_H_
#define KERNELS_SHARED_PICARD_STEP_H_

#include <cmath>

#include "kernels/shared/denoise.h"

// What time-parallel denoising does with one element, on the CPU and the GPU: policy/sampler.h says
// what for.

namespace mjp {

inline constexpr float kPicardLeastNoise = 0.05f;
inline constexpr float kPicardMaxToleranceScale = 10.0f;
inline constexpr int kPicardTrialPasses = 5;  // before a window may be abandoned

MJP_HOST_DEVICE inline float Clipped(const DenoiseStep& s, float x0) {
  if (!(s.clip > 0)) return x0;
  return x0 < -s.clip ? -s.clip : x0 > s.clip ? s.clip : x0;  // NaN passes
}

// The step with x0 and eps given.
MJP_HOST_DEVICE inline float StepFrom(const DenoiseStep& s, float x, float x0, float eps,
                                      float noise) {
  const float mean = s.x0_scale * Clipped(s, x0);
  if (s.ddim) return mean + s.eps_scale * eps;
  return mean + s.x_scale * x + (s.sigma > 0 ? s.sigma * noise : 0.0f);
}

// v = sqrt(a) eps - sqrt(1 - a) x0 of the network's output at x.
MJP_HOST_DEVICE inline float VelocityOf(const DenoiseStep& s, float x, float output) {
  return s.sqrt_a * PredictedNoise(s, x, output) - s.sqrt_1ma * PredictedSample(s, x, output);
}

// x0 at x of a frozen v.
MJP_HOST_DEVICE inline float SampleOfVelocity(const DenoiseStep& s, float x, float v) {
  return s.sqrt_a * x - s.sqrt_1ma * v;
}

// The step with v given.
MJP_HOST_DEVICE inline float StepOfVelocity(const DenoiseStep& s, float x, float v, float noise) {
  return StepFrom(s, x, SampleOfVelocity(s, x, v), s.sqrt_a * v + s.sqrt_1ma * x, noise);
}

// The step with x0 held.
MJP_HOST_DEVICE inline float StepOfSample(const DenoiseStep& s, float x, float x0, float noise) {
  return StepFrom(s, x, x0, (x - s.sqrt_a * x0) / s.sqrt_1ma, noise);
}

// Whether a step may tolerate more than a late one: while the noise is larger than the actions,
// DDPM replaces most of x by new noise. DDIM keeps what it was given.
MJP_HOST_DEVICE inline bool PicardScalesTolerance(const DenoiseStep& s) {
  return !s.ddim && s.sqrt_1ma > s.sqrt_a;
}

// How many times farther the input of such a step may be off for the same error of the result, by a
// measured slope of the network. A trained network takes most of what is off for noise: inputs that
// differ by sqrt(a) d, |d|^2 = `x_square`, gave x0 that differ little, |d0|^2 = `x0_square`.
MJP_HOST_DEVICE inline float PicardToleranceScale(const DenoiseStep& s, float x_square,
                                                  float x0_square) {
  const float noise = s.sqrt_1ma / s.sqrt_a;
  const float most =
      noise * noise < kPicardMaxToleranceScale ? noise * noise : kPicardMaxToleranceScale;
  const float shown = sqrtf(x_square / x0_square) / noise;
  return !(shown > 1) ? 1 : shown < most ? shown : most;
}

// How far the input of a final step may have moved since its evaluation, before that scale.
MJP_HOST_DEVICE inline float PicardLimit(const DenoiseStep& s, float tolerance) {
  return tolerance * (s.sqrt_1ma > kPicardLeastNoise ? s.sqrt_1ma : kPicardLeastNoise);
}

// Whether a window at step `begin` after `passes` passes gained too little: less than one and a
// half steps per pass.
MJP_HOST_DEVICE inline bool PicardGainsTooLittle(int begin, int passes) {
  return passes >= kPicardTrialPasses && 2 * begin < 3 * passes;
}

}  // namespace mjp

#endif  // KERNELS_SHARED_PICARD_STEP_H_
