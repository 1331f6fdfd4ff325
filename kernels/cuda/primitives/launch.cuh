#ifndef KERNELS_CUDA_PRIMITIVES_LAUNCH_CUH_
#define KERNELS_CUDA_PRIMITIVES_LAUNCH_CUH_

#include <cuda_runtime.h>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/gpu_traits.h"

// Launches kernels so that each may start before its predecessor in the stream ends (programmatic
// dependent launch), where both the device and the loaded code have it. Every kernel launched this
// way calls WaitForPredecessor() before it touches anything a predecessor wrote or reads.
//
// Below 9.0 both functions compile to nothing, which is right only where a kernel starts after its
// predecessor has ended. Two things hold that: Launch() is the one place that asks for dependent
// launch, and LaunchAttributes asks GpuTraits, which knows what the loaded code was compiled for,
// not what the device could do. A test holds the second; `git grep ProgrammaticStream` the first.

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
  int cluster_z = 1;             // blocks along z that share their memory; 1: no cluster
  bool beyond_portable = false;  // the cluster is larger than portable code's
  bool cooperative = false;      // all blocks run at once; starts after its predecessor has ended
};

// Throws Error(kEnvironment) for a cluster that the device or the code does not have.
inline void CheckCluster(const LaunchShape& shape, const GpuTraits& gpu, const char* name) {
  const int most = shape.beyond_portable ? gpu.LargestCluster() : gpu.ClusterBlocks();
  if (shape.cluster_z <= most) return;
  throw EnvironmentError(std::string(name) + " was planned for clusters of " +
                         std::to_string(shape.cluster_z) + " blocks, and " + gpu.name +
                         " with this code takes " + std::to_string(most));
}

// How a launch of `shape` may run on `gpu`. Throws what CheckCluster throws.
struct LaunchAttributes {
  cudaLaunchAttribute values[2] = {};
  unsigned count = 0;

  LaunchAttributes(const LaunchShape& shape, const GpuTraits& gpu, const char* name) {
    if (shape.cooperative) {
      values[count].id = cudaLaunchAttributeCooperative;
      values[count++].val.cooperative = 1;
    } else if (gpu.DependentLaunch()) {
      values[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      values[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (shape.cluster_z > 1) {
      CheckCluster(shape, gpu, name);
      values[count].id = cudaLaunchAttributeClusterDimension;
      values[count++].val.clusterDim = {1, 1, static_cast<unsigned>(shape.cluster_z)};
    }
  }
};

// Lets a kernel have so many bytes of dynamic shared memory on the current device. Throws Error.
// Asked before each launch: memory that was short once is no answer for the next one.
template <typename... Params>
void AllowShared(void (*kernel)(Params...), int bytes, const char* name) {
  CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), name);
}

// Launches kernel(args...) on `stream`. Throws Error.
template <typename... Params, typename... Args>
void Launch(void (*kernel)(Params...), const LaunchShape& shape, cudaStream_t stream,
            const char* name, Args&&... args) {
  LaunchAttributes attributes(shape, GpuTraits::Current(), name);
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = attributes.values;
  config.numAttrs = attributes.count;
  CheckCuda(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), name);
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_LAUNCH_CUH_
