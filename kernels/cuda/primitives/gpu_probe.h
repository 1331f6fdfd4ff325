#ifndef KERNELS_CUDA_PRIMITIVES_GPU_PROBE_H_
#define KERNELS_CUDA_PRIMITIVES_GPU_PROBE_H_

#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp {

// Asks the driver about the current device and about the code that it loads for it. Launches
// nothing. The field `code` is 0 where the build has none for it. Throws Error(kEnvironment) where
// no device answers, whose text says in one sentence what is missing ("no NVIDIA driver found").
GpuTraits ProbeGpu();

// The device that this thread's calls of CUDA go to; where it does not answer any more, the one
// that did last.
int CurrentDevice();

// Lets this thread's calls of CUDA go to one device until the end of the scope.
class DeviceScope {
 public:
  // Throws Error where the device cannot be used.
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int device_, before_;
};

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_GPU_PROBE_H_
