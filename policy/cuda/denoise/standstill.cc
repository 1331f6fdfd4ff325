#include "policy/cuda/denoise/standstill.h"

#include "base/error.h"
#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {

Standstill::Standstill(int* flag) : flag_(flag) {
  if (flag != nullptr) seen_ = PinnedArray<int>(1);
}

void Standstill::Reset(cudaStream_t stream) const {
  if (flag_ != nullptr)
    CheckCuda(cudaMemsetAsync(flag_, 0, sizeof(int), stream), "denoising chain");
}

void Standstill::Fetch(cudaStream_t stream) const {
  if (flag_ != nullptr)
    CheckCuda(cudaMemcpyAsync(seen_.data(), flag_, sizeof(int), cudaMemcpyDeviceToHost, stream),
              "denoising chain");
}

void Standstill::Check() {
  timed_out_ = timed_out_ || (flag_ != nullptr && seen_[0] != 0);
  if (!timed_out_) return;
  throw Error(ExitCode::kRetryable,
              "the denoising chain on the GPU stood still for seconds: blocks of it were not "
              "running; start the same command again, or use the CPU backend");
}

}  // namespace mjp
