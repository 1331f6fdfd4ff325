#ifndef POLICY_CUDA_DENOISE_DENOISER_H_
#define POLICY_CUDA_DENOISE_DENOISER_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "policy/cuda/decision/decision_timing.h"
#include "policy/cuda/denoise/denoising_chain.h"
#include "policy/cuda/denoise/pass_launches.h"
#include "policy/cuda/denoise/trace_recorder.h"

namespace mjp {

// Where a denoiser enqueues.
struct DenoiseContext {
  cudaStream_t stream, loop_stream;  // the second for the body of a graph's loop
  const DecisionTiming& timing;      // of its passes
  // Where it is null, `stream` is capturing, and nothing may wait. Otherwise it gets every step.
  TraceRecorder* trace;
};

// Runs a denoising chain in one form of the U-Net.
class Denoiser {
 public:
  virtual ~Denoiser() = default;

  // Enqueues the chain, from the start in x and the noise to the result in x, and what Passes() and
  // CheckFinished() are to read.
  virtual void Enqueue(const DenoiseContext& context) = 0;
  // Enqueues every kind of pass that it launches, to be captured and thrown away: throws Error for
  // a shape without a kernel.
  virtual void EnqueueEachPass(cudaStream_t /*stream*/) const {}
  // The most network passes that a decision takes, of all rows or of a launch's.
  virtual int MostPasses() const = 0;
  // The passes of the decision that has ended, where its first `count` environments were live.
  virtual int Passes(int /*count*/) const { return MostPasses(); }
  // Throws Error(kRetryable) where a decision up to the last one that has ended did not finish.
  virtual void CheckFinished() {}
};

// By passes of a `NetworkPass`: a launch per layer or convolution, or one for all steps where
// `RunSteps` has it. Its memory follows in `arena`, in which `chain` and `unet` are.
// Throws Error for a window that no kernel supports.
std::unique_ptr<Denoiser> MakePassDenoiser(const DenoisingChain& chain, PassLaunches unet,
                                           DeviceArena& arena);
// The Runge-Kutta method of flow matching, whose passes are the chain's steps; x0_scale of each is
// the time that four of them take.
std::unique_ptr<Denoiser> MakeRungeKuttaDenoiser(const DenoisingChain& chain,
                                                 std::unique_ptr<NetworkPass> pass,
                                                 DeviceArena& arena);
// By the megakernel.
std::unique_ptr<Denoiser> MakeMegakernelDenoiser(const DenoisingChain& chain, PassLaunches unet,
                                                 DeviceArena& arena);

}  // namespace mjp

#endif  // POLICY_CUDA_DENOISE_DENOISER_H_
