#ifndef KERNELS_CUDA_MEGAKERNEL_LAUNCH_PERSISTENT_CUH_
#define KERNELS_CUDA_MEGAKERNEL_LAUNCH_PERSISTENT_CUH_

#include "kernels/cuda/megakernel/args.cuh"
#include "kernels/cuda/primitives/launch.cuh"

// The launch that both forms of the megakernel have.

namespace mjp::megakernel {

// Launches a kernel, all of whose CTAs are resident at once. Throws Error.
template <auto kKernel, typename KernelArgs>
void LaunchPersistent(const KernelArgs& args, int ctas, size_t shared_bytes, cudaStream_t stream,
                      int threads = kMmaThreads) {
  AllowShared(kKernel, GpuTraits::Current().shared_bytes, "shared memory of the megakernel");
  LaunchShape shape;
  shape.grid = dim3(ctas), shape.block = dim3(threads);
  shape.shared_bytes = shared_bytes;
  shape.cooperative = true;
  Launch(kKernel, shape, stream, "megakernel", args);
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_LAUNCH_PERSISTENT_CUH_
