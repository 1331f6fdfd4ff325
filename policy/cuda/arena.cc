#include "policy/cuda/arena.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <string>

#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {
namespace {
constexpr size_t kAlignment = 256;

std::atomic<size_t> in_use = 0;  // bytes of all arenas

// Allocates device memory; null if there is no room. Throws Error for another fault.
void* Allocate(size_t bytes) {
  static const char* const limit = std::getenv("MJPOLICY_GPU_MIB");
  static const size_t most =
      limit ? std::strtoull(limit, nullptr, 10) << 20 : std::numeric_limits<size_t>::max();
  void* memory = nullptr;
  const cudaError_t status = in_use.fetch_add(bytes) + bytes <= most ? cudaMalloc(&memory, bytes)
                                                                     : cudaErrorMemoryAllocation;
  if (status == cudaSuccess) return memory;
  in_use -= bytes;
  static_cast<void>(cudaGetLastError());
  if (status != cudaErrorMemoryAllocation) CheckCuda(status, "device memory");
  return nullptr;
}

// The default stream may still be clearing or copying when those calls return, and the streams
// that use the memory do not wait for it.
void WaitForDefaultStream() {
  CheckCuda(cudaStreamSynchronize(cudaStreamLegacy), "copy to the device");
}

}  // namespace

DeviceArena::~DeviceArena() {
  // at process exit the driver may be gone already; there is nobody to tell
  if (base_ == nullptr) return;
  static_cast<void>(cudaFree(base_));
  in_use -= capacity_;
}

void* DeviceArena::TakeBytes(size_t bytes) {
  const size_t offset = used_;
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (base_ == nullptr) {
    capacity_ = used_;
  } else if (used_ > capacity_) {
    throw EnvironmentError("device arena: the second pass asked for more than was measured");
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the base is null while sizes are measured
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(base_) + offset);
}

void DeviceArena::Seal() {
  const size_t bytes = capacity_ == 0 ? kAlignment : capacity_;
  void* memory = Allocate(bytes);
  if (memory == nullptr) {
    throw OutOfDeviceMemory("the GPU has no room for " + std::to_string(bytes >> 20) +
                            " MiB; use a smaller batch or another precision");
  }
  base_ = static_cast<uint8_t*>(memory);
  capacity_ = bytes;
  used_ = 0;
  CheckCuda(cudaMemset(base_, 0, bytes), "clearing device memory");
  WaitForDefaultStream();
}

void DeviceArena::Upload(void* device, const void* host, size_t bytes) const {
  if (measuring() || bytes == 0) return;
  CheckCuda(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copy to the device");
  WaitForDefaultStream();
}

void DeviceArena::UploadForGood(void* device, const void* host, size_t bytes) {
  if (measuring() || bytes == 0) return;
  Upload(device, host, bytes);
  const size_t offset = static_cast<uint8_t*>(device) - base_;
  AddToChecksum(uploads_, offset / sizeof(uint32_t), host, bytes);
}

bool DeviceArena::HoldsUploads() const {
  return measuring() ||
         DeviceChecksum(base_, capacity_ / sizeof(uint32_t) * sizeof(uint32_t)) == uploads_;
}

}  // namespace mjp
