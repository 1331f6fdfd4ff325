#ifndef KERNELS_CUDA_PRIMITIVES_CUDA_CHECK_H_
#define KERNELS_CUDA_PRIMITIVES_CUDA_CHECK_H_

#include <cuda_runtime_api.h>

#include <string>

#include "base/error.h"

namespace mjp {

// Throws Error(kRetryable) for a failed CUDA call; `what` names the call.
inline void CheckCuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(ExitCode::kRetryable, std::string(what) + ": " + cudaGetErrorString(status) +
                                        "; start the same command again, or use the CPU backend");
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_CUDA_CHECK_H_
