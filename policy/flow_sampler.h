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

// Euler's steps as those of a reverse process whose network says by how much x moves:
// x' = x0_scale output + x. A step's timestep is the index of its time in FlowTimes. Windows of
// them hold the velocity where it was evaluated.
std::vector<DenoiseStep> FlowSteps(int steps);
// What windows of them tolerate where those of a diffusion's steps tolerate `tolerance`: as much at
// any time as a step that has the least noise.
float FlowTolerance(float tolerance);

// Takes `steps` equal steps by `kind`, kEuler or kRk4. It names times by their index in FlowTimes.
std::unique_ptr<Sampler> MakeFlowSampler(SamplerKind kind, int steps, int environments,
                                         int elements);

}  // namespace mjp

#endif  // POLICY_FLOW_SAMPLER_H_
