#include <cuda_runtime.h>

#include "base/error.h"
#include "kernels/cuda/primitives/gpu_probe.h"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace mjp {
namespace {

constexpr int kPlainBytes = 64, kWgmmaBytes = 128;

// Never launched: its attributes tell what the code of this build was compiled for. They know no
// feature by name, so the size of its shared memory says whether the code is sm_90a's.
__global__ void CodeProbe(int* out) {
  __shared__ int memory[(kHaveWgmma ? kWgmmaBytes : kPlainBytes) / sizeof(int)];
  memory[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = memory[threadIdx.x ^ 1];
}

std::string CudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Why there is no device.
Error NoDevice(cudaError_t status) {
  static_cast<void>(cudaGetLastError());
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    static_cast<void>(cudaGetLastError());
    return EnvironmentError("no NVIDIA driver found");
  }
  if (status == cudaErrorInsufficientDriver)
    return EnvironmentError("the NVIDIA driver is for CUDA " + CudaVersionText(driver) +
                            " and this build needs " + CudaVersionText(CUDART_VERSION) +
                            ": update the driver");
  if (status == cudaErrorNoDevice || status == cudaSuccess)
    return EnvironmentError("no NVIDIA GPU found");
  return EnvironmentError(std::string("the NVIDIA GPU does not answer: ") +
                          cudaGetErrorString(status));
}

int Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  const cudaError_t status = cudaDeviceGetAttribute(&value, attribute, device);
  if (status != cudaSuccess) throw NoDevice(status);
  return value;
}

// Throws Error where a question failed because the device has no room for a program more: that says
// nothing of its kind.
void CheckRoom(cudaError_t status, const GpuTraits& gpu) {
  if (status != cudaErrorMemoryAllocation) return;
  static_cast<void>(cudaGetLastError());
  throw EnvironmentError(gpu.name +
                         " has no memory left for this program: end others that use it, or choose "
                         "another GPU by CUDA_VISIBLE_DEVICES");
}

// Blocks of the largest portable cluster that the device takes; 1 where it takes none.
int LargestCluster(const GpuTraits& gpu) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(8);
  config.blockDim = dim3(32);
  int blocks = 0;
  const cudaError_t status = cudaOccupancyMaxPotentialClusterSize(&blocks, CodeProbe, &config);
  CheckRoom(status, gpu);
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return 1;
  }
  return blocks < 1 ? 1 : blocks;
}

void ReadDevice(GpuTraits& traits) {
  int count = 0, device = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) throw NoDevice(status);
  status = cudaGetDevice(&device);
  if (status != cudaSuccess) throw NoDevice(status);
  cudaDeviceProp properties = {};
  status = cudaGetDeviceProperties(&properties, device);
  if (status != cudaSuccess) throw NoDevice(status);
  traits.name = properties.name;
  traits.capability = 10 * properties.major + properties.minor;
  traits.multiprocessors = properties.multiProcessorCount;
  traits.shared_bytes = Attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  traits.cooperative = Attribute(cudaDevAttrCooperativeLaunch, device) != 0;
}

}  // namespace

int CurrentDevice() {
  static thread_local int last = 0;
  int device = 0;
  if (cudaGetDevice(&device) == cudaSuccess) return last = device;
  static_cast<void>(cudaGetLastError());
  return last;
}

GpuTraits ProbeGpu() {
  GpuTraits traits;
  ReadDevice(traits);
  cudaFuncAttributes code = {};
  const cudaError_t status = cudaFuncGetAttributes(&code, CodeProbe);
  CheckRoom(status, traits);
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return traits;
  }
  traits.code = code.ptxVersion;
  traits.code_wgmma = code.sharedSizeBytes == kWgmmaBytes;
  traits.cluster_blocks = LargestCluster(traits);
  return traits;
}

}  // namespace mjp
