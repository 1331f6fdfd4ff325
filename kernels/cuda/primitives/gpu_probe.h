#ifndef KERNELS_CUDA_PRIMITIVES_GPU_PROBE_H_
#define KERNELS_CUDA_PRIMITIVES_GPU_PROBE_H_

#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp {

// Asks the driver about the current device and about the code that it loads for it. Launches
// nothing. Throws Error(kEnvironment), whose text says in one sentence what is missing ("no NVIDIA
// driver found") and what to do about it.
GpuTraits ProbeGpu();

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_GPU_PROBE_H_
