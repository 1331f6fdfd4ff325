#ifndef KERNELS_CUDA_MEGAKERNEL_EXCHANGE_WHOLE_ACCESS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EXCHANGE_WHOLE_ACCESS_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

// Values that CTAs exchange through L2, stored and loaded whole: a vector that carries its own flag
// is seen with all of its values or with none, as in NCCL's LL protocol.

namespace mjp::megakernel {

// One access of 16 bytes, b128: a v4 access is atomic only by element, and could be seen in part.
__device__ __forceinline__ uint4 Load16(const void* at) {
  unsigned __int128 all;
  asm volatile("ld.relaxed.gpu.global.b128 %0, [%1];" : "=q"(all) : "l"(at));
  return reinterpret_cast<const uint4&>(all);
}
__device__ __forceinline__ void Store16(void* at, const uint4& v) {
  asm volatile("st.relaxed.gpu.global.b128 [%0], %1;" ::"l"(at),
               "q"(reinterpret_cast<const unsigned __int128&>(v))
               : "memory");
}

__device__ __forceinline__ uint2 Load8(const void* at) {
  uint64_t all;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(all) : "l"(at));
  return reinterpret_cast<const uint2&>(all);
}
__device__ __forceinline__ void Store8(void* at, const uint2& v) {
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(at),
               "l"(reinterpret_cast<const uint64_t&>(v))
               : "memory");
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_EXCHANGE_WHOLE_ACCESS_CUH_
