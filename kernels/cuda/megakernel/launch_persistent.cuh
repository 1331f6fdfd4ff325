#ifndef KERNELS_CUDA_MEGAKERNEL_LAUNCH_PERSISTENT_CUH_
#define KERNELS_CUDA_MEGAKERNEL_LAUNCH_PERSISTENT_CUH_

#include "kernels/cuda/megakernel/args.cuh"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/gpu_traits.h"

// The launch that both forms of the megakernel have.

namespace mjp::megakernel {

// Launches a kernel, all of whose CTAs are resident at once. Throws Error.
template <auto kKernel, typename KernelArgs>
void LaunchPersistent(const KernelArgs& args, int ctas, size_t shared_bytes, cudaStream_t stream,
                      int threads = kMmaThreads) {
  CheckCuda(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 GpuTraits::Current().shared_bytes),
            "shared memory of the megakernel");
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(ctas);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CheckCuda(cudaLaunchKernelEx(&config, kKernel, args), "megakernel");
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_LAUNCH_PERSISTENT_CUH_
