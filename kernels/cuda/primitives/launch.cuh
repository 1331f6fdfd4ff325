#ifndef KERNELS_CUDA_PRIMITIVES_LAUNCH_CUH_
#define KERNELS_CUDA_PRIMITIVES_LAUNCH_CUH_

#include <cuda_runtime.h>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/gpu_traits.h"

// Launches kernels so that each may start before its predecessor in the stream ends (programmatic
// dependent launch), where both the device and the loaded code have it. Every kernel launched this
// way calls WaitForPredecessor() before it touches anything a predecessor wrote or reads. Code for
// less than 9.0 has no such instruction and is never launched so: the stream's order is its wait.

namespace mjp {

// Blocks until all kernels before this one in the stream have finished and their writes are seen.
__device__ __forceinline__ void WaitForPredecessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel of the stream start its prologue as soon as every block got here.
__device__ __forceinline__ void ReleaseSuccessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

struct LaunchShape {
  dim3 grid, block;
  size_t shared_bytes = 0;
  int cluster_z = 1;  // blocks along z that share their memory; 1: no cluster
};

// Throws Error(kEnvironment) for a cluster that the device or the code does not have.
inline void CheckCluster(int blocks, const char* name) {
  if (blocks <= GpuTraits::Current().ClusterBlocks()) return;
  throw EnvironmentError(std::string(name) + " was planned for clusters of " +
                         std::to_string(blocks) + " blocks, and " + GpuTraits::Current().name +
                         " with this code takes " +
                         std::to_string(GpuTraits::Current().ClusterBlocks()));
}

// Launches kernel(args...) on `stream`. Throws Error(kRetryable).
template <typename... Params, typename... Args>
void Launch(void (*kernel)(Params...), const LaunchShape& shape, cudaStream_t stream,
            const char* name, Args&&... args) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  config.numAttrs = GpuTraits::Current().DependentLaunch() ? 1 : 0;
  if (shape.cluster_z > 1) {
    CheckCluster(shape.cluster_z, name);
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = 1;
    attributes[1].val.clusterDim.y = 1;
    attributes[1].val.clusterDim.z = static_cast<unsigned>(shape.cluster_z);
    config.numAttrs = 2;  // clusters imply dependent launches
  }
  CheckCuda(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), name);
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_LAUNCH_CUH_
