#ifndef POLICY_CUDA_DENOISE_PICARD_CHAIN_H_
#define POLICY_CUDA_DENOISE_PICARD_CHAIN_H_

#include "kernels/cuda/primitives/cuda_raii.h"
#include "kernels/cuda/sampler/picard.cuh"
#include "policy/cuda/denoise/denoising_chain.h"
#include "policy/cuda/denoise/trace_recorder.h"

namespace mjp {

// What every form of time-parallel denoising keeps: where each environment's chain stands, and the
// steps for a trace.
class PicardChain {
 public:
  // Takes its memory from `arena`. Throws Error for a window that no kernel supports.
  PicardChain(const DenoisingChain& chain, DeviceArena& arena);

  // Of the chain's window; without what a network's rows add.
  const PicardArgs& args() const { return args_; }
  // `args`, with every step kept for CopyTrace().
  PicardArgs Traced(const PicardArgs& args) const;
  void CopyTrace(TraceRecorder& trace) const;
  // Enqueues the states' way to the host.
  void FetchStates(cudaStream_t stream) const;
  // Passes of the first `count` environments, as fetched.
  int Passes(int count) const;

 private:
  const DenoisingChain& chain_;
  PicardArgs args_;
  float *all_x_ = nullptr, *all_output_ = nullptr;  // (steps, environments, elements)
  PinnedArray<PicardState> host_states_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DENOISE_PICARD_CHAIN_H_
