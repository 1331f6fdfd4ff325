#ifndef POLICY_CUDA_ARENA_H_
#define POLICY_CUDA_ARENA_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/primitives/checksum.h"

namespace mjp {

// Device memory of one owner. The same code first measures (a fresh arena hands out offsets from
// null), then places: Seal() allocates what was measured, and the code runs again on the memory.
// After that nothing is allocated. Move-only by intent; the one place that allocates what
// stays.
class DeviceArena {
 public:
  DeviceArena() = default;
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  // Room for `count` elements, 256-byte aligned. While measuring, not to be dereferenced.
  template <typename T>
  T* Take(size_t count) {
    return static_cast<T*>(TakeBytes(count * sizeof(T)));
  }
  void* TakeBytes(size_t bytes);

  // Ends measuring: allocates, zeroes, starts again at the front. Throws OutOfDeviceMemory if the
  // device has no room, or all arenas together would exceed MJPOLICY_GPU_MIB (environment).
  void Seal();
  bool measuring() const { return base_ == nullptr; }
  size_t bytes() const { return capacity_; }
  // The whole of it, once sealed.
  template <typename T>
  T* Base() const {
    return reinterpret_cast<T*>(base_);
  }

  // Copies host memory to `device`, where it is when this returns; does nothing while measuring.
  void Upload(void* device, const void* host, size_t bytes) const;
  // The same for what stays as it is, which HoldsUploads knows: each place once.
  void UploadForGood(void* device, const void* host, size_t bytes);
  // Whether the memory holds what UploadForGood put there and zeros elsewhere.
  bool HoldsUploads() const;

 private:
  uint8_t* base_ = nullptr;
  size_t used_ = 0, capacity_ = 0;
  Checksum uploads_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_ARENA_H_
