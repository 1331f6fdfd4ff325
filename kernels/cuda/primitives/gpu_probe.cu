#include <cuda_runtime.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/primitives/cuda_check.h"
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
  const cudaError_t asked = cudaDriverGetVersion(&driver);
  static_cast<void>(cudaGetLastError());
  if (asked == cudaSuccess && driver == 0) return EnvironmentError("no NVIDIA driver found");
  if (status == cudaErrorInsufficientDriver)
    return EnvironmentError("the NVIDIA driver is for CUDA " + CudaVersionText(driver) +
                            " and this build needs " + CudaVersionText(CUDART_VERSION) +
                            ": update the driver");
  if (status == cudaErrorNoDevice || status == cudaSuccess)
    return EnvironmentError("no NVIDIA GPU found");
  const std::string text =
      std::string("the NVIDIA GPU does not answer: ") + cudaGetErrorString(status);
  if (CudaRetryHelps(status))
    return Error(ExitCode::kRetryable, text + "; start the same command again");
  return EnvironmentError(text);
}

int Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  const cudaError_t status = cudaDeviceGetAttribute(&value, attribute, device);
  if (status != cudaSuccess) throw NoDevice(status);
  return value;
}

// Throws Error unless `status` is an answer: success, or that the device takes none of the code. A
// device without room for a program more, or one that is lost, says nothing of its kind.
void CheckAnswers(cudaError_t status, const GpuTraits& gpu) {
  switch (status) {
    case cudaSuccess:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilationDisabled:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return;
    case cudaErrorMemoryAllocation:
      static_cast<void>(cudaGetLastError());
      throw EnvironmentError(
          gpu.name +
          " has no memory left for this program: end others that use it, or choose another GPU by "
          "CUDA_VISIBLE_DEVICES");
    default:
      throw NoDevice(status);
  }
}

// What the occupancy calculator says of clusters; 0 where none fits.
int Answer(cudaError_t status, int count, const GpuTraits& gpu) {
  if (status != cudaErrorInvalidClusterSize) CheckAnswers(status, gpu);
  static_cast<void>(cudaGetLastError());
  return status == cudaSuccess ? std::max(0, count) : 0;
}

// Asks for the largest portable cluster that the device takes, and how many of them it runs at
// once: of blocks that leave no room for another one.
void AskForClusters(GpuTraits& gpu) {
  if (gpu.capability < 90 || gpu.code < 90) return;
  const int shared_bytes = gpu.shared_bytes - kWgmmaBytes;
  CheckCuda(
      cudaFuncSetAttribute(CodeProbe, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
      "shared memory of the probe");
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(8);
  config.blockDim = dim3(32);
  config.dynamicSmemBytes = shared_bytes;
  int count = 0;
  cudaError_t status = cudaOccupancyMaxPotentialClusterSize(&count, CodeProbe, &config);
  const int blocks = Answer(status, count, gpu);
  if (blocks < 2) return;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  config.gridDim = dim3(blocks);
  config.attrs = &cluster;
  config.numAttrs = 1;
  status = cudaOccupancyMaxActiveClusters(&count, CodeProbe, &config);
  gpu.clusters_at_once = Answer(status, count, gpu);
  if (gpu.clusters_at_once > 0) gpu.cluster_blocks = blocks;
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

DeviceScope::DeviceScope(int device) : device_(device), before_(CurrentDevice()) {
  if (device_ != before_) CheckCuda(cudaSetDevice(device_), "the choice of a GPU");
}

DeviceScope::~DeviceScope() {
  if (device_ != before_) static_cast<void>(cudaSetDevice(before_));
}

GpuTraits ProbeGpu() {
  GpuTraits traits;
  ReadDevice(traits);
  cudaFuncAttributes code = {};
  const cudaError_t status = cudaFuncGetAttributes(&code, CodeProbe);
  CheckAnswers(status, traits);
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return traits;
  }
  traits.code = code.ptxVersion;
  traits.code_wgmma = code.sharedSizeBytes == kWgmmaBytes;
  AskForClusters(traits);
  return traits;
}

}  // namespace mjp
