#ifndef KERNELS_CUDA_PRIMITIVES_DRIVER_FUNCTION_H_
#define KERNELS_CUDA_PRIMITIVES_DRIVER_FUNCTION_H_

#include <cuda_runtime_api.h>

namespace mjp {

// Finds a function of the driver, which this project is not linked with, as CUDA 12.0 has it. False
// where the driver lacks it.
template <typename Function>
bool FindDriverFunction(const char* name, Function*& function) {
  constexpr unsigned kVersion = 12000;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  function = reinterpret_cast<Function*>(found);
  return status == cudaSuccess && found != nullptr;
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_DRIVER_FUNCTION_H_
