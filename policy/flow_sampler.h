#ifndef POLICY_FLOW_SAMPLER_H_
#define POLICY_FLOW_SAMPLER_H_

#include <memory>
#include <vector>

#include "policy/sampler.h"

// Flow matching: the network is a velocity, and the chunk is where it carries noise from time 0 to
// time 1. In float32, in LeRobot's order of operations; nothing is clipped.

namespace mjp {

// The times of the network's passes, in their order: `steps` of Euler's, or three for each step of
// the Runge-Kutta method (its begin, middle and end; the middle is evaluated twice).
std::vector<double> FlowTimes(SamplerKind kind, int steps);

// Takes `steps` equal steps by `kind`, kEuler or kRk4. It names times by their index in FlowTimes.
std::unique_ptr<Sampler> MakeFlowSampler(SamplerKind kind, int steps, int environments,
                                         int elements);

}  // namespace mjp

#endif  // POLICY_FLOW_SAMPLER_H_
