#ifndef POLICY_SCHEDULER_H_
#define POLICY_SCHEDULER_H_

#include <vector>

#include "kernels/shared/denoise.h"
#include "policy/checkpoint/config.h"

// The reverse process as diffusers computes it: float32 scalars, in the library's order of
// operations.

namespace mjp {

// Noise added at each of the training timesteps.
std::vector<float> Betas(const SchedulerConfig& config);
// Cumulative product of 1 - beta.
std::vector<float> AlphasCumprod(const SchedulerConfig& config);

// The steps of a chain of `steps` evaluations in the order they run ("leading" timesteps: t falls
// by train_steps / steps, down to 0). Of a one-step student: its only one, at the last timestep.
// Throws Error unless 1 <= steps <= train_steps.
std::vector<DenoiseStep> MakeSchedule(const SchedulerConfig& config, SamplerKind kind, int steps);

}  // namespace mjp

#endif  // POLICY_SCHEDULER_H_
