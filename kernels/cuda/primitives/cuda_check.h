#ifndef KERNELS_CUDA_PRIMITIVES_CUDA_CHECK_H_
#define KERNELS_CUDA_PRIMITIVES_CUDA_CHECK_H_

#include <cuda_runtime_api.h>

#include <string>

#include "base/error.h"

namespace mjp {

// Whether a second try can cure a failed call: a fault of the device or of the driver's state. What
// this program or its build got wrong fails again.
inline bool CudaRetryHelps(cudaError_t status) {
  switch (status) {
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidPtx:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorCooperativeLaunchTooLarge:
    case cudaErrorInvalidClusterSize:
    case cudaErrorIllegalInstruction:
    case cudaErrorAssert:
    case cudaErrorNotSupported:
    case cudaErrorNotPermitted:
      return false;
    default:
      return true;
  }
}

// Throws Error for a failed CUDA call, which `what` names: kRetryable where a second try can help,
// OutOfDeviceMemory, else kEnvironment.
inline void CheckCuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
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
