#ifndef KERNELS_CUDA_PRIMITIVES_TENSOR_MAP_H_
#define KERNELS_CUDA_PRIMITIVES_TENSOR_MAP_H_

#include <cuda.h>

#include <array>
#include <cstdint>

#include "kernels/shared/format.h"

// Descriptions of tensors for Hopper's tensor memory accelerator (TMA), which copies a block of a
// tensor to shared memory by one instruction: kernels/cuda/primitives/tma.cuh.

namespace mjp {

// A tensor of up to four dimensions that lies without gaps, the innermost first: channels, columns,
// rows, maps. A copy takes `extent` of each; what lies outside of the tensor arrives as zeros.
struct TensorBlocks {
  const void* data = nullptr;  // at a multiple of 16 bytes
  std::array<uint64_t, 4> size = {1, 1, 1, 1};
  std::array<uint32_t, 4> extent = {1, 1, 1, 1};  // up to 256; 128 bytes of the innermost
};

// The description that a kernel takes as a parameter, of a 16-bit format; rows of 128 bytes arrive
// in the 128-byte swizzle. Throws Error(kEnvironment) where the driver refuses it.
CUtensorMap MakeTensorMap(Format format, const TensorBlocks& blocks);

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_TENSOR_MAP_H_
