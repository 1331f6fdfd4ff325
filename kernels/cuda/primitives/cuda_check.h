#ifndef KERNELS_CUDA_PRIMITIVES_CUDA_CHECK_H_
#define KERNELS_CUDA_PRIMITIVES_CUDA_CHECK_H_

#include <cuda_runtime_api.h>

#include <string>

#include "base/error.h"

namespace mjp {

// Whether a second try can cure a failed call: what happened to the device or to the driver, and
// not what this program did to it. A fault of a kernel is none of these: the same code faults
// again.
inline bool CudaRetryHelps(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorLaunchTimeout:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
    case cudaErrorOperatingSystem:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

// Throws Error for a failed CUDA call, which `what` names: kRetryable where a second try can help,
// OutOfDeviceMemory, else kEnvironment.
inline void CheckCuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // said here, not to whoever launches a kernel next
  const std::string text = std::string(what) + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation)
    throw OutOfDeviceMemory(text + "; free memory on the GPU, or use the CPU backend");
  if (!CudaRetryHelps(status))
    throw EnvironmentError(text +
                           "; trying again gives the same: run `mjpolicy doctor`, or use "
                           "the CPU backend");
  throw Error(ExitCode::kRetryable,
              text + "; start the same command again, or use the CPU backend");
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_CUDA_CHECK_H_
