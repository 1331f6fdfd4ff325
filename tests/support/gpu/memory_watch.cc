#include "tests/support/gpu/memory_watch.h"

#include <cuda_runtime.h>

#include <utility>

namespace mjp_test {

MemoryWatch& MemoryWatch::Get() {
  static MemoryWatch& watch = *new MemoryWatch;  // the driver calls until the very end
  return watch;
}

std::vector<DeviceBlock> MemoryWatch::Blocks() const {
  std::vector<DeviceBlock> blocks;
  for (const auto& [begin, block] : blocks_) blocks.push_back(block);
  return blocks;
}

void MemoryWatch::BeforeLaunch(std::function<void(long launch, cudaStream_t stream)> call) {
  before_launch_ = std::move(call);
  launches_ = 0;
}

void MemoryWatch::Allocated(void* memory, size_t bytes) {
  char* const begin = static_cast<char*>(memory);
  blocks_[begin] = {begin, bytes, 0};
}

void MemoryWatch::Freed(void* memory) { blocks_.erase(static_cast<char*>(memory)); }

void MemoryWatch::Uploaded(const void* memory, size_t bytes) {
  for (auto& [begin, block] : blocks_) {
    const auto at = static_cast<const char*>(memory) - begin;
    if (at >= 0 && at < static_cast<ptrdiff_t>(block.bytes)) block.uploaded += bytes;
  }
}

void MemoryWatch::Launching(cudaStream_t stream) {
  if (!before_launch_) return;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) return;
  if (status == cudaStreamCaptureStatusNone) before_launch_(++launches_, stream);
}

}  // namespace mjp_test

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {

cudaError_t __real_cudaMalloc(void** memory, size_t bytes);
cudaError_t __wrap_cudaMalloc(void** memory, size_t bytes) {
  const cudaError_t status = __real_cudaMalloc(memory, bytes);
  if (status == cudaSuccess) mjp_test::MemoryWatch::Get().Allocated(*memory, bytes);
  return status;
}

cudaError_t __real_cudaFree(void* memory);
cudaError_t __wrap_cudaFree(void* memory) {
  mjp_test::MemoryWatch::Get().Freed(memory);
  return __real_cudaFree(memory);
}

cudaError_t __real_cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t __wrap_cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice) mjp_test::MemoryWatch::Get().Uploaded(to, bytes);
  return __real_cudaMemcpy(to, from, bytes, kind);
}

cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                       void** arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                       void** arguments) {
  mjp_test::MemoryWatch::Get().Launching(config->stream);
  return __real_cudaLaunchKernelExC(config, function, arguments);
}

cudaError_t __real___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                      size_t shared, cudaStream_t stream);
cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                      size_t shared, cudaStream_t stream) {
  mjp_test::MemoryWatch::Get().Launching(stream);
  return __real___cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
