#ifndef POLICY_CUDA_DENOISE_STANDSTILL_H_
#define POLICY_CUDA_DENOISE_STANDSTILL_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/primitives/cuda_raii.h"

namespace mjp {

// What the host knows of a kernel whose blocks wait for each other: whether a wait lasted seconds.
class Standstill {
 public:
  // `flag`, device memory, becomes 1 where one does; null: no block waits.
  explicit Standstill(int* flag = nullptr);

  // Enqueue: before the kernel and after it.
  void Reset(cudaStream_t stream) const;
  void Fetch(cudaStream_t stream) const;
  // What such a decision left behind is of no known pass: no decision after it is trusted. Throws
  // Error(kRetryable) where one up to the last one that has ended did not finish.
  void Check();

 private:
  int* flag_;
  PinnedArray<int> seen_;   // of the last decision
  bool timed_out_ = false;  // ever
};

}  // namespace mjp

#endif  // POLICY_CUDA_DENOISE_STANDSTILL_H_
