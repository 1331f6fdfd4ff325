#ifndef POLICY_CUDA_DENOISE_DENOISING_CHAIN_H_
#define POLICY_CUDA_DENOISE_DENOISING_CHAIN_H_

#include <memory>
#include <vector>

#include "kernels/cuda/sampler/denoise.cuh"
#include "policy/cuda/arena.h"
#include "policy/cuda/decision/input_block.h"
#include "policy/cuda/denoise/held_prefix.h"
#include "policy/policy.h"

namespace mjp {

// The reverse process of every environment of a decision: its schedule, and what of it lies on the
// device. Whoever runs it turns x from the start into the result.
class DenoisingChain {
 public:
  // `options` as resolved; `steps` in the order in which they run.
  DenoisingChain(const PolicyConfig& config, std::vector<DenoiseStep> steps,
                 const PolicyOptions& options, Format format);

  void Plan(DeviceArena& arena);
  // Puts the schedule on the device, once the memory is there.
  void UploadSchedule(DeviceArena& arena) const;
  // Enqueues the start and the noise of every step, but for what was given from outside, and the
  // way of what is held.
  void EnqueueNoise(const InputBlock& input, cudaStream_t stream) const;
  // Puts the start and the noise of tests and of recordings on the device; either may be empty.
  void UploadGiven(const PolicyInput& input, DeviceArena& arena) const;

  // Takes the known beginning of the chunks of `input`, where chunks may have one.
  void WriteHeld(const Checkpoint& checkpoint, const PolicyInput& input);
  // Whether chunks may have a known beginning. Then it is put in its place before each pass, by
  // EnqueueHeld(k) for step k, and in the end, by EnqueueHeld(Steps()); before the step of a warm
  // start the plan before is, too. Else that does nothing.
  bool holds() const { return held_ != nullptr; }
  void EnqueueHeld(int step, cudaStream_t stream) const;

  const Format format;
  const int environments, horizon, action_dim;
  const int window;       // steps that a pass evaluates of each environment; 1: one after the other
  const float tolerance;  // of a window
  const std::vector<DenoiseStep> steps;

  int Steps() const { return static_cast<int>(steps.size()); }
  int Elements() const { return horizon * action_dim; }  // of one environment

  // Device memory.
  float* x = nullptr;               // (environments, elements)
  float* noise = nullptr;           // (steps, environments, elements); null: DDIM
  int* timesteps = nullptr;         // (steps)
  DenoiseStep* schedule = nullptr;  // (steps)
  // Each row's timestep, for passes of one step: (steps, environments); room for (environments *
  // window) where there are windows.
  int* row_step = nullptr;

 private:
  bool noisy_;
  std::unique_ptr<HeldPrefixOnDevice> held_;
  bool noiseless_;  // what is held
  int warm_start_;  // steps in whose place chunks begin at the plan before
  float temperature_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DENOISE_DENOISING_CHAIN_H_
