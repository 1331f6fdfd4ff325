#ifndef POLICY_CUDA_DENOISE_HELD_PREFIX_H_
#define POLICY_CUDA_DENOISE_HELD_PREFIX_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/primitives/cuda_raii.h"
#include "kernels/cuda/sampler/hold_prefix.cuh"
#include "kernels/shared/denoise.h"
#include "policy/cuda/arena.h"
#include "policy/policy.h"

namespace mjp {

// The known beginning of the chunks of a decision, and the plan before, on the host and on the
// device.
class HeldPrefixOnDevice {
 public:
  // `plan`: chunks begin at the plan before.
  explicit HeldPrefixOnDevice(bool plan) : plan_(plan) {}

  // `x` is where the chain is, (environments, elements).
  void Plan(int environments, int elements, float* x, DeviceArena& arena);
  // Takes that of `input`, on the host.
  void Write(const Checkpoint& checkpoint, const PolicyInput& input);
  // Enqueues its way to the device, and keeps the start, which is in x.
  void Upload(cudaStream_t stream) const;
  // Enqueues what takes its place in x before the pass of `step`; null: without noise, as in
  // the end.
  void Enqueue(const DenoiseStep* step, cudaStream_t stream) const;
  // Enqueues the plan before, which takes the place of x before the pass of `step`.
  void EnqueuePlan(const DenoiseStep& step, cudaStream_t stream) const;

 private:
  const bool plan_;
  HoldPrefixArgs args_;
  float *clean_ = nullptr, *start_ = nullptr;
  int* held_ = nullptr;
  PinnedArray<float> host_clean_;
  PinnedArray<int> host_held_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DENOISE_HELD_PREFIX_H_
