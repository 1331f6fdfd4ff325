#ifndef POLICY_DIT_DIT_TRACE_H_
#define POLICY_DIT_DIT_TRACE_H_

#include <vector>

#include "policy/dit/dit_config.h"
#include "policy/policy.h"

namespace mjp {

// The times of the passes of a decision by `sampler`: timesteps of diffusion, or flow matching's 0
// ... 1. The Runge-Kutta method names three for a step, whose middle it evaluates twice.
std::vector<double> DitPassTimes(const DitConfig& config, const SamplerOptions& sampler);

// Adds to a trace of `count` environments what the goldens have, under their names. `sample`:
// (count, horizon, action_dim).
void CompleteDitTrace(const DitConfig& config, const SamplerOptions& sampler, const float* sample,
                      int count, PolicyTrace& trace);

}  // namespace mjp

#endif  // POLICY_DIT_DIT_TRACE_H_
