#ifndef KERNELS_CUDA_PRIMITIVES_CHECKSUM_H_
#define KERNELS_CUDA_PRIMITIVES_CHECKSUM_H_

#include <cstddef>
#include <cstdint>

namespace mjp {

// The sum of all 32-bit words and the sum of each times its place, modulo 2^64: what one flipped
// bit changes in both. Words of zero add nothing, so parts of a memory may be summed by themselves.
struct Checksum {
  uint64_t words = 0, places = 0;
  bool operator==(const Checksum&) const = default;
};

// Adds host memory that stands from word `first` on; a last word that is not whole has zeros
// behind.
void AddToChecksum(Checksum& sum, size_t first, const void* host, size_t bytes);

// The checksum of device memory of whole words. Waits for it. Throws Error.
Checksum DeviceChecksum(const void* device, size_t bytes);

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_CHECKSUM_H_
