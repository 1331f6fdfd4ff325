#ifndef KERNELS_CUDA_PRIMITIVES_DEVICE_TRAITS_H_
#define KERNELS_CUDA_PRIMITIVES_DEVICE_TRAITS_H_

#include <cuda_runtime_api.h>

// What the current device can do; asked once per process.

namespace mjp {

inline int DeviceAttribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  return value;
}

// Clusters of blocks and dependent launches: compute capability 9.0 and later.
inline bool DeviceHasClusters() {
  static const bool has = DeviceAttribute(cudaDevAttrComputeCapabilityMajor) >= 9;
  return has;
}

// Most bytes of shared memory that a block may ask for.
inline int DeviceMaxSharedBytes() {
  static const int bytes = DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  return bytes;
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_DEVICE_TRAITS_H_
