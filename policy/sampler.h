#ifndef POLICY_SAMPLER_H_
#define POLICY_SAMPLER_H_

#include <memory>
#include <vector>

#include "kernels/shared/denoise.h"
#include "policy/policy.h"

// How the reverse process runs over a network: one step after the other, or a window of steps at a
// time. Works for any backend that can evaluate rows on the host's request: today the CPU's, and so
// are sequential_sampler.cc, parallel_sampler.cc and flow_sampler.cc. The GPU's are in
// policy/cuda/denoise/.

namespace mjp {

// The network: output row r = network(x row r) at step step[r] of the schedule for environment[r].
class StepNetwork {
 public:
  virtual ~StepNetwork() = default;
  virtual void Evaluate(const float* x, const int* step, const int* environment, int rows,
                        float* output) = 0;
};

// Noise of one step of the schedule for all environments: (environments, elements).
class NoiseSource {
 public:
  virtual ~NoiseSource() = default;
  virtual void Fill(int step, float* noise) const = 0;
};

// The known beginning of chunks; see kernels/shared/held_element.h. With `warm_start` also the rest
// of the plan before, at which a chain with a known beginning starts: after so many steps, with the
// noise of the next one. Refining a noised guess is SDEdit (Meng et al. 2021), of the plan before
// the warm start of Diffuser (Janner et al. 2022).
struct HeldElements {
  const float* clean = nullptr;  // (environments, elements), normalised
  const int* held = nullptr;     // (environments): elements that are known, from the first on
  bool noiseless = false;        // at every step, not in the end alone
  int warm_start = 0;            // steps; below those of the chain
};

// One run of a chain. `elements` = horizon * action_dim of one environment.
struct ChainRun {
  int environments = 0;
  float* x = nullptr;  // (environments, elements); in: the start, out: the result
  const NoiseSource* noise = nullptr;
  PolicyTrace* trace = nullptr;  // eps_steps and x_steps are filled if set
  HeldElements held = {};        // of sequential chains; none where held.held is null
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  // Runs the chain and returns the number of network passes.
  virtual int Run(StepNetwork& network, const ChainRun& run) = 0;
  // Rows that one pass may ask of the network.
  virtual int MaxRows() const = 0;
};

// One pass per step of the schedule, all environments together.
std::unique_ptr<Sampler> MakeSequentialSampler(const std::vector<DenoiseStep>& schedule,
                                               int environments, int elements);

// Picard iteration over a window of `window` steps: one pass evaluates all of them, then the steps
// are taken again with each step's v = sqrt(a) eps - sqrt(1 - a) x0 as it was evaluated, corrected
// by the secant through the evaluation before. A step whose input moved by at most tolerance *
// max(sqrt(1 - a), 0.05) is final, and the window moves past it; a step that DDPM takes at much
// noise may move farther, as far as the network showed that its x0 hardly changes with it
// (PicardToleranceScale in kernels/shared/picard_step.h). The first step of a window has the
// sequential chain's input, so the fixed point is the sequential chain's own result. Where the
// window gains too little, the rest of the chain runs sequentially.
std::unique_ptr<Sampler> MakeParallelSampler(const std::vector<DenoiseStep>& schedule,
                                             int environments, int elements, int window,
                                             float tolerance);

// What a window tolerates where nothing else is asked for: it leaves less than the number format's
// own error (docs/NUMERICS.md).
float DefaultTolerance(Precision precision);

}  // namespace mjp

#endif  // POLICY_SAMPLER_H_
