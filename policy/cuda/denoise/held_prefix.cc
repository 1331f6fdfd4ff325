#include "policy/cuda/denoise/held_prefix.h"

#include "kernels/cuda/primitives/cuda_check.h"
#include "policy/prefix/held_prefix.h"

namespace mjp {

void HeldPrefixOnDevice::Plan(int environments, int elements, float* x, DeviceArena& arena) {
  const size_t size = size_t{1} * environments * elements;
  clean_ = arena.Take<float>(size);
  start_ = arena.Take<float>(size);
  held_ = arena.Take<int>(environments);
  args_ = {false, environments, elements, 1, 0, clean_, held_, start_, x};
  if (arena.measuring()) return;
  host_clean_ = PinnedArray<float>(size);
  host_held_ = PinnedArray<int>(environments);
}

void HeldPrefixOnDevice::Write(const Checkpoint& checkpoint, const PolicyInput& input) {
  const size_t environments = args_.environments;
  FillHeld(checkpoint, input, plan_, {host_clean_.data(), environments * args_.elements},
           {host_held_.data(), environments});
}

void HeldPrefixOnDevice::Upload(cudaStream_t stream) const {
  const char what[] = "copy of the prefix";
  CheckCuda(cudaMemcpyAsync(clean_, host_clean_.data(), host_clean_.bytes(), cudaMemcpyHostToDevice,
                            stream),
            what);
  CheckCuda(
      cudaMemcpyAsync(held_, host_held_.data(), host_held_.bytes(), cudaMemcpyHostToDevice, stream),
      what);
  CheckCuda(cudaMemcpyAsync(start_, args_.x, host_clean_.bytes(), cudaMemcpyDeviceToDevice, stream),
            what);
}

void HeldPrefixOnDevice::Enqueue(const DenoiseStep* step, cudaStream_t stream) const {
  HoldPrefixArgs a = args_;
  if (step != nullptr) a.sqrt_a = step->sqrt_a, a.sqrt_1ma = step->sqrt_1ma;
  LaunchHoldPrefix(a, stream);
}

void HeldPrefixOnDevice::EnqueuePlan(const DenoiseStep& step, cudaStream_t stream) const {
  HoldPrefixArgs a = args_;
  a.whole = true;
  a.sqrt_a = step.sqrt_a, a.sqrt_1ma = step.sqrt_1ma;
  LaunchHoldPrefix(a, stream);
}

}  // namespace mjp
