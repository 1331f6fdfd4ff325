#ifndef POLICY_CUDA_DIT_DIT_SCHEDULE_H_
#define POLICY_CUDA_DIT_DIT_SCHEDULE_H_

#include <string>
#include <vector>

#include "kernels/cpu/thread_pool.h"
#include "kernels/shared/denoise.h"
#include "policy/dit/trunk.h"
#include "policy/policy.h"

namespace mjp {

// The steps of a decision as a DenoisingChain has them. Flow matching's are those of FlowSteps; the
// Runge-Kutta method's have its four passes each.
std::vector<DenoiseStep> DitSchedule(const DitConfig& config, const SamplerOptions& sampler);

// What those times add to the modulation of all blocks: (times, blocks * 6 hidden), where a step's
// row is its timestep.
std::vector<float> DitTimeTerms(const DitConfig& config, const cpu::PackedTrunk& trunk,
                                const SamplerOptions& sampler, cpu::ThreadPool& pool);

}  // namespace mjp

#endif  // POLICY_CUDA_DIT_DIT_SCHEDULE_H_
