#ifndef KERNELS_CUDA_MEGAKERNEL_EVICT_FIRST_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EVICT_FIRST_CUH_

#include <cstdint>

#include "kernels/cuda/primitives/ptx.cuh"

// Loads of weights that must not push the exchange buffers out of L2.

namespace mjp::megakernel {

// L2 policy of what is read once in a pass: it is evicted first. Created at each use: a loop would
// hold it in two registers otherwise.
__device__ __forceinline__ uint64_t EvictFirstPolicy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
// Loads 16 bytes of weights, with such a policy.
__device__ __forceinline__ void LoadOnce(uint32_t (&to)[4], const void* global, uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "l"(global), "l"(policy));
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_EVICT_FIRST_CUH_
