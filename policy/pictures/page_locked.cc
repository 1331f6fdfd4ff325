#include "policy/pictures/page_locked.h"

#include <cstring>

#ifdef MJPOLICY_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace mjp {

#ifdef MJPOLICY_HAVE_CUDA

namespace {

// What is not there, or refused, is no error of the program's.
bool Succeeded(cudaError_t status) {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status == cudaSuccess;
}

void* LockedMemory(size_t size) {
  int devices = 0;
  void* memory = nullptr;
  if (!Succeeded(cudaGetDeviceCount(&devices)) || devices == 0) return nullptr;
  return Succeeded(cudaHostAlloc(&memory, size, cudaHostAllocPortable)) ? memory : nullptr;
}

bool IsLocked(const uint8_t* byte) {
  cudaPointerAttributes attributes = {};
  return Succeeded(cudaPointerGetAttributes(&attributes, byte)) &&
         attributes.type == cudaMemoryTypeHost;
}

}  // namespace

PictureMemory::PictureMemory(size_t size, bool page_locked) : size_(size) {
  if (size == 0) return;
  if (void* locked = page_locked ? LockedMemory(size) : nullptr) {
    std::memset(locked, 0, size);
    memory_ = {static_cast<uint8_t*>(locked),
               [](uint8_t* memory) { static_cast<void>(cudaFreeHost(memory)); }};
    return;
  }
  memory_ = {new uint8_t[size](), [](uint8_t* memory) { delete[] memory; }};
}

bool InPageLockedMemory(std::span<const uint8_t> bytes) {
  return !bytes.empty() && IsLocked(bytes.data()) && IsLocked(&bytes.back());
}

#else

PictureMemory::PictureMemory(size_t size, bool)
    : memory_(size == 0 ? nullptr : new uint8_t[size](), [](uint8_t* memory) { delete[] memory; }),
      size_(size) {}

bool InPageLockedMemory(std::span<const uint8_t>) { return false; }

#endif

}  // namespace mjp
